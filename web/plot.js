// One plot on a canvas: lines, marks, axes, the cursor, and the part of time that is being selected.
"use strict";
// Radius of a pin.
const PIN = 8;
class Plot {
  constructor(group, spec, lines, figure) {
    Object.assign(this, { group, spec, lines, pixels: 0 });
    this.box = figure.appendChild(document.createElement("div"));
    this.box.className = "box";
    this.box.tabIndex = 0;
    this.box.setAttribute("role", "img");
    this.canvas = this.box.appendChild(document.createElement("canvas"));
    this.over = null;
  }

  shown() { return this.lines.filter((line) => !this.group.hidden.has(`${this.spec.title}/${line.key}`)); }

  // Greatest (and least) value of the axis for the time in view; see `lead` in scale.js.
  limits() {
    const { from, to } = this.group.view;
    const shown = this.shown();
    const lead = shown.some((line) => line.lead) ? shown.filter((line) => line.lead) : shown;
    let low = Infinity, high = 0;
    for (const line of lead) {
      const [l, h] = Data.range(line.data, from, to);
      low = Math.min(low, l);
      high = Math.max(high, h);
    }
    const top = high;
    for (const line of shown) {
      const h = Data.range(line.data, from, to)[1];
      if (h <= top * 4) high = Math.max(high, h);
    }
    // The sequence plot follows the zoom at its bottom, too: losses deep in a transfer would be a flat line otherwise.
    const floor = this.spec.unit === "data" && from > 0 && low < Infinity ? low : 0;
    return [floor, high > floor ? floor + (high - floor) * 1.08 : floor + 1];
  }

  layout() {
    const ratio = window.devicePixelRatio || 1;
    const width = Math.max(this.box.clientWidth, 120), height = this.spec.height;
    if (this.canvas.width !== Math.round(width * ratio) || this.canvas.height !== Math.round(height * ratio)) {
      this.canvas.width = Math.round(width * ratio);
      this.canvas.height = Math.round(height * ratio);
      this.canvas.style.height = `${height}px`;
    }
    return { ratio, width, height, left: 64, right: width - 8, top: 8, bottom: height - 22 };
  }

  draw() {
    const area = (this.area = this.layout());
    const { from, to } = this.group.view;
    const [low, high] = this.group.shared.values ? this.group.page.limits(this) : this.limits();
    const g = this.canvas.getContext("2d");
    g.setTransform(area.ratio, 0, 0, area.ratio, 0, 0);
    g.clearRect(0, 0, area.width, area.height);
    this.x = (t) => area.left + ((t - from) / (to - from)) * (area.right - area.left);
    this.y = (v) => area.bottom - ((v - low) / (high - low)) * (area.bottom - area.top);
    g.save();
    g.beginPath();
    g.rect(area.left, 0, area.right - area.left, area.bottom + 1);
    g.clip();
    for (const line of this.shown()) this.line(g, line);
    this.marks(g);
    g.restore();
    if (this.group.page.counting) this.pixels = this.count(g);
    this.above(g, high);
    // What follows goes behind the data, so that the data could be counted alone above.
    g.globalCompositeOperation = "destination-over";
    this.axes(g, low, high);
    g.globalCompositeOperation = "source-over";
    this.pins(g);
    this.cursor(g);
  }

  line(g, line) {
    const [times, values] = line.data, { from, to } = this.group.view;
    const start = Math.max(0, Data.before(times, from));
    g.strokeStyle = g.fillStyle = this.group.page.color(line.color);
    g.lineWidth = line.width ?? 1.6;
    g.lineJoin = "round";
    g.setLineDash(line.dash ?? []);
    g.beginPath();
    let last = null, i = start;
    for (; i < times.length; i++) {
      const x = this.x(times[i]), y = this.y(values[i]);
      if (last === null) g.moveTo(x, y);
      else {
        if (line.step) g.lineTo(x, last);
        g.lineTo(x, y);
      }
      last = y;
      if (times[i] > to) break;
    }
    // A step holds until the connection's end.
    if (last !== null && line.step && i >= times.length) g.lineTo(this.x(Math.max(this.group.end, times[times.length - 1])), last);
    g.stroke();
    g.setLineDash([]);
    if (line.fill && last !== null) {
      g.globalAlpha = line.fill;
      g.lineTo(this.x(Math.min(to, this.group.end)), this.y(0));
      g.lineTo(this.x(times[start]), this.y(0));
      g.fill();
      g.globalAlpha = 1;
    }
    // Few points are seen better as dots, too; a lone point has no line at all.
    if (line.loose || times.length === 1) {
      const visible = Data.before(times, to) - start;
      if (visible > (this.area.right - this.area.left) / 3 && times.length > 1) return;
      for (let k = start; k < times.length && times[k] <= to; k++) {
        g.beginPath();
        g.arc(this.x(times[k]), this.y(values[k]), 1.8, 0, 7);
        g.fill();
      }
    }
  }

  markPlaces() {
    if (!this.spec.marks) return [];
    const [times, bytes, kinds] = this.group.arm.marks, { from, to } = this.group.view;
    const flight = this.group.arm.series.flight, found = [];
    for (let i = 0; i < times.length; i++) {
      if (times[i] < from || times[i] > to || this.group.hidden.has(`mark/${kinds[i]}`)) continue;
      const v = this.spec.marks === "byte" ? bytes[i] : Data.at(flight, times[i]) ?? 0;
      found.push({ t: times[i], byte: bytes[i], kind: kinds[i], x: this.x(times[i]), y: Math.max(this.y(v), this.area.top) });
    }
    return found;
  }

  marks(g) {
    const places = this.markPlaces();
    for (const mark of places) {
      const color = this.group.page.color(MARKS[mark.kind].color);
      // Rare events get a line down to the axis; among hundreds it would be a wall.
      if ((mark.kind === 1 || places.length < 60) && this.spec.marks === "line") {
        g.globalAlpha = 0.35;
        g.fillStyle = color;
        g.fillRect(mark.x - 0.5, mark.y, 1, this.area.bottom - mark.y);
        g.globalAlpha = 1;
      }
      Plot.glyph(g, MARKS[mark.kind].shape, mark.x, mark.y, 4, color);
    }
  }

  static glyph(g, shape, x, y, r, color) {
    g.fillStyle = g.strokeStyle = color;
    g.lineWidth = 1.8;
    g.beginPath();
    if (shape === "cross") { g.moveTo(x - r, y - r); g.lineTo(x + r, y + r); g.moveTo(x + r, y - r); g.lineTo(x - r, y + r); g.stroke(); return; }
    if (shape === "ring") { g.arc(x, y, r - 0.5, 0, 7); g.stroke(); return; }
    if (shape === "square") g.rect(x - r + 0.5, y - r + 0.5, 2 * r - 1, 2 * r - 1);
    if (shape === "triangle") { g.moveTo(x, y - r); g.lineTo(x + r, y + r); g.lineTo(x - r, y + r); }
    if (shape === "diamond") { g.moveTo(x, y - r); g.lineTo(x + r, y); g.lineTo(x, y + r); g.lineTo(x - r, y); }
    g.fill();
  }

  // Where the facts of the findings are, by the numbers they have in the text above the plots. Those that would cover each other stand
  // one below the other.
  pinPlaces() {
    const { from, to } = this.group.view, ends = [], found = [];
    this.group.arm.pins.map((t, place) => ({ t, number: place + 1 })).filter((pin) => pin.t >= from && pin.t <= to)
      .sort((a, b) => a.t - b.t)
      .forEach((pin) => {
        const x = this.x(pin.t);
        let row = ends.findIndex((end) => end < x - PIN - 2);
        if (row < 0) row = ends.length;
        ends[row] = x + PIN;
        found.push({ ...pin, x, y: this.area.top + PIN + row * (2 * PIN + 2) });
      });
    return found;
  }

  pins(g) {
    const { left, right, bottom } = this.area, page = this.group.page;
    g.font = "600 11px system-ui, sans-serif";
    g.textAlign = "center";
    g.textBaseline = "middle";
    for (const { number, x, y } of this.pinPlaces()) {
      if (y > bottom - PIN) continue;
      g.fillStyle = page.color("--ink");
      g.globalAlpha = 0.45;
      g.fillRect(x - 0.5, y, 1, bottom - y);
      g.globalAlpha = 1;
      const at = Math.min(Math.max(x, left + PIN), right - PIN);
      g.beginPath();
      g.arc(at, y, PIN, 0, 7);
      g.fill();
      g.fillStyle = page.color("--card");
      g.fillText(String(number), at, y + 0.5);
    }
  }

  // Says which lines leave the plot at its top in the time in view, and how far up they go.
  above(g, high) {
    const { from, to } = this.group.view;
    let x = this.area.right - 4;
    g.font = "11px system-ui, sans-serif";
    g.textAlign = "right";
    g.textBaseline = "top";
    for (const line of this.shown()) {
      const greatest = Data.range(line.data, from, to)[1];
      if (!(greatest > high)) continue;
      const text = `↑ ${line.name} up to ${Units.print(this.spec.unit, greatest)}`;
      g.fillStyle = this.group.page.color(line.color);
      g.fillText(text, x, this.area.top - 6);
      x -= g.measureText(text).width + 14;
    }
  }

  axes(g, low, high) {
    const { left, right, top, bottom } = this.area, { from, to } = this.group.view, page = this.group.page;
    g.font = "11px system-ui, sans-serif";
    g.fillStyle = page.color("--faint");
    g.textBaseline = "middle";
    g.textAlign = "right";
    const values = Units.ticks(this.spec.unit, low, high, (bottom - top) / 42);
    for (const [v, text] of values) g.fillText(text, left - 6, this.y(v));
    g.textBaseline = "top";
    g.textAlign = "center";
    const times = Units.ticks("s", from, to, (right - left) / 90);
    for (const [t, text] of times) {
      const half = g.measureText(text).width / 2;
      g.fillText(text, Math.min(Math.max(this.x(t), left - 6 + half), right + 8 - half), bottom + 6);
    }
    g.fillStyle = page.color("--line");
    g.fillRect(left, bottom, right - left, 1);
    g.fillStyle = page.color("--grid");
    for (const [v] of values) g.fillRect(left, Math.round(this.y(v)), right - left, 1);
    for (const [t] of times) g.fillRect(Math.round(this.x(t)), top, 1, bottom - top);
  }

  cursor(g) {
    const { cursor, drag } = this.group, { top, bottom, left, right } = this.area;
    if (drag && Math.abs(drag.b - drag.a) > 0) {
      const [a, b] = [drag.a, drag.b].map((t) => Math.min(Math.max(this.x(t), left), right));
      g.globalAlpha = 0.18;
      g.fillStyle = this.group.page.color("--focus");
      g.fillRect(Math.min(a, b), top, Math.abs(b - a), bottom - top);
      g.globalAlpha = 1;
    }
    if (cursor === null || this.x(cursor) < left || this.x(cursor) > right) return;
    g.fillStyle = this.group.page.color("--faint");
    g.fillRect(Math.round(this.x(cursor)), top, 1, bottom - top);
    if (cursor > this.group.end) return;
    for (const line of this.shown()) {
      const v = Data.at(line.data, cursor);
      if (v === null || this.y(v) < top - 4) continue;
      g.fillStyle = this.group.page.color(line.color);
      g.beginPath();
      g.arc(this.x(cursor), this.y(v), 3, 0, 7);
      g.fill();
    }
  }

  time(event) {
    const { left, right } = this.area, { from, to } = this.group.view;
    const x = event.clientX - this.canvas.getBoundingClientRect().left;
    return from + (Math.min(Math.max((x - left) / (right - left), 0), 1)) * (to - from);
  }

  count(g) {
    const pixels = g.getImageData(0, 0, this.canvas.width, this.canvas.height).data;
    let drawn = 0;
    for (let i = 3; i < pixels.length; i += 4) if (pixels[i] > 16) drawn++;
    return drawn;
  }
}
