// The page's behaviour: arms with their plots on one time axis, zoom, cursor, legends, and copying commands.
// Names come from captures and are untrusted: they are put into text nodes only.
"use strict";
window.addEventListener("error", (event) => { document.documentElement.dataset.error = String(event.message); });

const element = (name, attributes = {}, ...children) => {
  const made = document.createElement(name);
  for (const key in attributes) made.setAttribute(key, attributes[key]);
  made.append(...children);
  return made;
};

// The plots of one arm: they share the time in view, the cursor, and what is hidden.
class Group {
  constructor(page, arm, article) {
    Object.assign(this, { page, arm, hidden: new Set(), cursor: null, drag: null, plots: [], outputs: [], shared: page.shared });
    this.end = Data.span(arm);
    this.view = { from: 0, to: this.end };
    const figures = article.appendChild(element("div", { class: "figures" }));
    for (const spec of PLOTS) this.add(spec, figures);
    // A fact's number shows where it is: the cursor goes there, and into view.
    for (const pin of article.querySelectorAll("button.pin")) {
      pin.addEventListener("click", () => {
        const t = Number(pin.dataset.time), { from, to } = this.view;
        if (t < from || t > to) page.reset(this);
        page.point(this, t);
      });
    }
  }

  add(spec, figures) {
    const figure = figures.appendChild(element("figure"));
    const caption = figure.appendChild(element("figcaption"));
    const title = caption.appendChild(element("div", { class: "title" }, element("b", {}, spec.title)));
    const lines = spec.lines.map((line) => ({ ...line, data: this.arm.series[line.key] })).filter((line) => line.data[0].length);
    if (!lines.some((line) => line.lead)) {
      figure.append(element("div", { class: "none" }, spec.empty));
      return;
    }
    const plot = new Plot(this, spec, lines, figure);
    plot.box.setAttribute("aria-label", `${spec.title} of ${this.arm.name}. Arrow keys move the cursor, plus and minus zoom, Escape shows all.`);
    if (lines.length > 1) for (const line of lines) this.key(caption, plot, line);
    else this.only(title, plot, lines[0]);
    if (spec.marks) this.markKeys(caption);
    const at = title.appendChild(element("span", { class: "at", "aria-live": "polite" }));
    this.outputs.push(() => { at.textContent = this.cursor === null ? "" : this.describe(plot); });
    this.plots.push(plot);
    this.listen(plot);
  }

  key(caption, plot, line) {
    this.toggle(caption, `${plot.spec.title}/${line.key}`, this.swatch(line), line.name, this.value(plot, line));
  }

  // The only line of a plot has the plot's name, and is not hidden.
  only(title, plot, line) {
    title.append(element("span", { class: "key" }, this.swatch(line), this.value(plot, line)));
  }

  swatch(line) {
    const swatch = element("i", { class: line.dash ? "dashed" : line.fill ? "area" : "line" });
    swatch.style.color = `var(${line.color})`;
    return swatch;
  }

  value(plot, line) {
    const value = element("output");
    this.outputs.push(() => {
      // Past the end of a connection that was over sooner than another there is no value.
      const v = this.cursor === null || this.cursor > this.end ? null : Data.at(line.data, this.cursor);
      value.textContent = v === null ? "" : Units.print(plot.spec.unit, v);
    });
    return value;
  }

  markKeys(caption) {
    const counts = MARKS.map((_, kind) => this.arm.marks[2].filter((k) => k === kind).length);
    counts.forEach((count, kind) => {
      if (!count) return;
      const swatch = element("canvas", { width: 24, height: 24 });
      this.page.swatches.push(() => {
        const g = swatch.getContext("2d");
        g.clearRect(0, 0, 24, 24);
        Plot.glyph(g, MARKS[kind].shape, 12, 12, 8, this.page.color(MARKS[kind].color));
      });
      this.toggle(caption, `mark/${kind}`, swatch, `${MARKS[kind].name} ${count.toLocaleString("en-US")}`);
    });
    const drawn = counts.reduce((sum, count, kind) => (MARKS[kind].sent ? sum + count : sum), 0);
    if (drawn && drawn < this.arm.retransmits) {
      caption.append(element("span", { class: "faint" }, `drawn of ${this.arm.retransmits.toLocaleString("en-US")} retransmissions`));
    }
  }

  toggle(caption, id, ...content) {
    const button = caption.appendChild(element("button", { type: "button", class: "key", "aria-pressed": "true", "data-id": id }, ...content));
    button.addEventListener("click", () => {
      if (!this.hidden.delete(id)) this.hidden.add(id);
      for (const same of caption.closest(".arm").querySelectorAll("button.key")) {
        same.setAttribute("aria-pressed", String(!this.hidden.has(same.dataset.id)));
      }
      this.page.draw();
    });
  }

  // The cursor's time, and the loss mark beside it.
  describe(plot) {
    const text = `${this.cursor.toFixed(Math.max(3, Math.min(6, 2 - Math.floor(Math.log10(this.view.to - this.view.from)))))} s`;
    let near = null;
    for (const mark of plot.area ? plot.markPlaces() : []) {
      const far = Math.abs(mark.x - plot.x(this.cursor));
      if (far < 6 && (!near || far < near.far)) near = { far, mark };
    }
    const pin = plot.area ? plot.pinPlaces().find((each) => Math.abs(each.x - plot.x(this.cursor)) < 4) : null;
    if (pin && !near) return `fact ${pin.number} · ${text}`;
    return near ? `${MARKS[near.mark.kind].name}, byte ${near.mark.byte.toLocaleString("en-US")} · ${text}` : text;
  }

  listen(plot) {
    const box = plot.box;
    let pressed = null;
    box.addEventListener("pointerdown", (event) => {
      if (event.button) return;
      pressed = { x: event.clientX, t: plot.time(event) };
      if (event.pointerType === "mouse") box.setPointerCapture(event.pointerId);
    });
    box.addEventListener("pointermove", (event) => {
      const t = plot.time(event);
      if (pressed && Math.abs(event.clientX - pressed.x) > 4) this.drag = { a: pressed.t, b: t };
      this.page.point(this, t);
    });
    box.addEventListener("pointerup", () => {
      if (this.drag) this.page.zoom(this, Math.min(this.drag.a, this.drag.b), Math.max(this.drag.a, this.drag.b));
      pressed = this.drag = null;
      this.page.draw();
    });
    box.addEventListener("pointercancel", () => { pressed = this.drag = null; this.page.draw(); });
    box.addEventListener("pointerleave", () => { if (!pressed) this.page.point(this, null); });
    // With Ctrl (or a pinch, which browsers report so) the wheel zooms about the pointer; alone it scrolls the page.
    box.addEventListener("wheel", (event) => {
      if (!event.ctrlKey) return;
      event.preventDefault();
      const t = plot.time(event), { from, to } = this.view, grow = Math.exp(Math.min(Math.max(event.deltaY, -100), 100) / 250);
      this.page.zoom(this, t - (t - from) * grow, t + (to - t) * grow);
    }, { passive: false });
    box.addEventListener("dblclick", () => this.page.reset(this));
    box.addEventListener("blur", () => this.page.point(this, null));
    box.addEventListener("keydown", (event) => this.press(event));
  }

  press(event) {
    const { from, to } = this.view, width = to - from;
    const step = width / (event.shiftKey ? 10 : 200);
    const now = this.cursor ?? (from + to) / 2;
    const move = { ArrowLeft: now - step, ArrowRight: now + step, Home: from, End: to }[event.key];
    if (move !== undefined) this.page.point(this, Math.min(Math.max(move, from), to));
    else if (event.key === "+" || event.key === "=") this.page.zoom(this, now - width / 4, now + width / 4);
    else if (event.key === "-") this.page.zoom(this, now - width, now + width);
    else if (event.key === "Escape" || event.key === "0") this.page.reset(this);
    else return;
    event.preventDefault();
  }
}

class Page {
  constructor() {
    const arms = JSON.parse(document.getElementById("data").textContent);
    const controls = document.getElementById("controls");
    const shared = controls !== null && controls.dataset.shared === "true" && arms.length > 1;
    Object.assign(this, { shared: { time: shared, values: false }, swatches: [], colors: {}, counting: location.hash === "#check", queued: false });
    this.groups = arms.map((arm, place) => new Group(this, arm, document.querySelector(`[data-arm="${place}"]`)));
    if (controls) this.controls(controls);
    this.reset(this.groups[0]);
    for (const medium of ["(prefers-color-scheme: dark)", "print"]) {
      window.matchMedia(medium).addEventListener("change", () => { this.colors = {}; this.drawNow(); });
    }
    window.addEventListener("beforeprint", () => this.drawNow());
    new ResizeObserver(() => this.draw()).observe(document.body);
    this.copying();
    this.drawNow();
  }

  controls(controls) {
    const option = (key, text) => {
      const box = element("input", { type: "checkbox" });
      box.checked = this.shared[key];
      box.addEventListener("change", () => { this.shared[key] = box.checked; this.groups.forEach((group) => this.reset(group)); });
      controls.append(element("label", { class: "check" }, box, text));
    };
    if (this.groups.length > 1) {
      option("time", "same time axis");
      option("values", "same value axes");
    }
    const all = element("button", { type: "button", class: "tool" }, "Show all");
    all.addEventListener("click", () => this.groups.forEach((group) => this.reset(group)));
    controls.append(all, element("span", {}, "Drag across a plot or use Ctrl and the wheel to zoom, double-click to see all; click a name to hide its line."));
  }

  // The groups that move together with this one.
  with(group) { return this.shared.time ? this.groups : [group]; }

  zoom(group, from, to) {
    const end = this.shared.time ? Math.max(...this.groups.map((each) => each.end)) : group.end;
    // Below a microsecond there is nothing: captures and series are no finer.
    if (!(to - from > 1e-6)) return;
    const view = { from: Math.max(0, from), to: Math.min(end, to) };
    for (const each of this.with(group)) each.view = { ...view };
    this.draw();
  }

  reset(group) {
    if (!group) return;
    const end = Math.max(...this.with(group).map((each) => each.end));
    for (const each of this.with(group)) each.view = { from: 0, to: end };
    this.draw();
  }

  point(group, t) {
    for (const each of this.with(group)) each.cursor = t;
    this.draw();
  }

  // The widest limits the same plot has in any arm.
  limits(plot) {
    const all = this.groups.flatMap((group) => group.plots).filter((each) => each.spec === plot.spec).map((each) => each.limits());
    return [Math.min(...all.map((each) => each[0])), Math.max(...all.map((each) => each[1]))];
  }

  color(name) {
    return (this.colors[name] ??= getComputedStyle(document.documentElement).getPropertyValue(name).trim());
  }

  draw() {
    if (this.queued) return;
    this.queued = true;
    requestAnimationFrame(() => { this.queued = false; this.drawNow(); });
  }

  drawNow() {
    for (const swatch of this.swatches) swatch();
    let plots = 0;
    for (const group of this.groups) {
      for (const plot of group.plots) {
        plot.draw();
        plots++;
        if (this.counting) plot.canvas.dataset.pixels = plot.pixels;
      }
      for (const output of group.outputs) output();
    }
    document.documentElement.dataset.plots = plots;
  }

  copying() {
    for (const block of document.querySelectorAll(".commands")) {
      const button = element("button", { type: "button", class: "tool" }, "Copy");
      button.addEventListener("click", async () => {
        const code = block.querySelector("code");
        getSelection().selectAllChildren(code);
        try {
          await navigator.clipboard.writeText(code.textContent);
          button.textContent = "Copied";
        } catch {
          button.textContent = "Selected: press Ctrl+C";
        }
      });
      block.querySelector("h3").append(button);
    }
  }
}
window.thalweg = new Page();
