// Figures as people say them; the Rust side prints the same way (crates/report/src/figures.rs).
"use strict";
const Units = (() => {
  const digits = (v) => {
    const a = Math.abs(v);
    if (a === 0) return "0";
    if (a < 9.995) return v.toFixed(2);
    if (a < 99.95) return v.toFixed(1);
    return Math.round(v).toLocaleString("en-US");
  };
  const prefixed = (step, names) => (v) => {
    let place = 0;
    while (place < names.length - 1 && Math.abs(v) >= step ** (place + 1) * 0.9995) place++;
    return [step ** place, names[place]];
  };
  const kinds = {
    size: prefixed(1024, ["B", "KiB", "MiB", "GiB", "TiB"]),
    data: prefixed(1000, ["B", "kB", "MB", "GB", "TB"]),
    rate: prefixed(1000, ["b/s", "kb/s", "Mb/s", "Gb/s", "Tb/s"]),
    ms: (v) => (Math.abs(v) >= 1e4 ? [1000, "s"] : Math.abs(v) > 0 && Math.abs(v) < 1 ? [0.001, "µs"] : [1, "ms"]),
    s: (v) => (Math.abs(v) > 0 && Math.abs(v) < 1e-3 ? [1e-6, "µs"] : Math.abs(v) < 1 && v !== 0 ? [1e-3, "ms"] : [1, "s"]),
  };
  const print = (kind, v) => {
    const [scale, name] = kinds[kind](v);
    return `${digits(v / scale)} ${name}`;
  };
  // Steps of 1, 2 or 5 in the unit that suits the greatest value, about `count` of them.
  const ticks = (kind, low, high, count) => {
    const [scale, name] = kinds[kind](Math.max(Math.abs(low), Math.abs(high)));
    const rough = (high - low) / scale / Math.max(count, 1);
    if (!(rough > 0)) return [];
    const power = 10 ** Math.floor(Math.log10(rough));
    const step = power * [1, 2, 5, 10].find((s) => s * power >= rough * 0.999);
    const places = Math.max(0, -Math.floor(Math.log10(step) + 1e-9));
    const found = [];
    for (let n = Math.ceil(low / scale / step - 1e-9); n * step * scale <= high * (1 + 1e-9); n++) {
      const text = (n * step).toFixed(places);
      found.push([n * step * scale, n === 0 ? "0" : `${text} ${name}`]);
    }
    return found;
  };
  return { print, ticks };
})();
