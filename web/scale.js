// Searching and measuring series: arrays of times in order, and of values.
"use strict";
const Data = (() => {
  // Place of the last time at or before t; -1 before the first.
  const before = (times, t) => {
    let low = 0, high = times.length;
    while (low < high) {
      const middle = (low + high) >> 1;
      if (times[middle] <= t) low = middle + 1; else high = middle;
    }
    return low - 1;
  };
  const at = ([times, values], t) => {
    const place = before(times, t);
    return place < 0 ? null : values[place];
  };
  // Least and greatest value shown between two times, the one that holds at the left edge included.
  const range = ([times, values], from, to) => {
    let low = Infinity, high = -Infinity;
    for (let i = Math.max(0, before(times, from)); i < times.length && times[i] <= to; i++) {
      low = Math.min(low, values[i]);
      high = Math.max(high, values[i]);
    }
    return [low, high];
  };
  const span = (arm) => {
    let end = 0;
    for (const key in arm.series) {
      const times = arm.series[key][0];
      if (times.length) end = Math.max(end, times[times.length - 1]);
    }
    const marks = arm.marks[0];
    return Math.max(end, marks.length ? marks[marks.length - 1] : 0) || 1;
  };
  return { before, at, range, span };
})();
// `sent`: the mark is a packet sent again.
const MARKS = [
  { name: "fast retransmit", color: "--m-fast", shape: "triangle", sent: true },
  { name: "sent again after a timeout", color: "--m-rto", shape: "cross", sent: true },
  { name: "tail loss probe", color: "--m-tlp", shape: "diamond", sent: true },
  { name: "spurious", color: "--m-spurious", shape: "ring", sent: true },
  { name: "zero window", color: "--m-zero", shape: "square" },
];
// `lead` series set the scale; others count for it while they stay below four times the lead.
// Lines are drawn in this order. The flight is an area and the window a strong line above it, so that a flight that
// fills the window does not hide what limits it.
const PLOTS = [
  { title: "In flight against the window", unit: "size", height: 230, marks: "line", lines: [
    { key: "flight", name: "in flight", color: "--flight", step: true, lead: true, fill: 0.3, width: 0.8 },
    { key: "window", name: "receive window", color: "--window", step: true, width: 2.6 },
    { key: "cwnd", name: "congestion window", color: "--cwnd", step: true, width: 1.3, dash: [5, 4] },
  ], empty: "Nothing was in flight in what was captured." },
  { title: "Time–sequence", unit: "data", height: 200, marks: "byte", lines: [
    { key: "sent", name: "sent", color: "--flight", step: true, lead: true },
    { key: "acked", name: "acknowledged", color: "--acked", step: true, lead: true },
  ], empty: "No data was sent in what was captured." },
  { title: "Throughput of new payload", unit: "rate", height: 140, lines: [
    { key: "rate", name: "new payload", color: "--rate", step: true, fill: 0.14, lead: true },
  ], empty: "There is no throughput to draw: no data was sent." },
  { title: "Round-trip time", unit: "ms", height: 140, lines: [
    { key: "rtt", name: "RTT", color: "--rtt", lead: true, loose: true },
  ], empty: "No round trip could be timed from this capture." },
  { title: "Congestion window", unit: "size", height: 140, lines: [
    { key: "cwnd", name: "congestion window", color: "--cwnd", step: true, lead: true },
  ], empty: "There are no samples of the congestion window: a capture alone does not hold it." },
];
