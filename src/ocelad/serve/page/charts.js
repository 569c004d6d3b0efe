// The two charts: calibration as a reliability diagram, and the learning curve with its trend.

import uPlot from "./vendor/uPlot.esm.js";
import { colours, FONT, many, onTheme, percent } from "./theme.js";

const byId = (id) => document.getElementById(id);

/** A uPlot that follows the size of its place and the theme; `options(theme)` and `data` are made anew for these. */
class Chart {
  constructor(id, options) {
    this.place = byId(id);
    this.options = options;
    this.data = null;
    this.plot = null;
    new ResizeObserver(() => this.plot?.setSize(this.#size())).observe(this.place);
    onTheme(() => this.#make());
  }

  show(data) {
    this.place.parentElement.classList.toggle("filled", data !== null);
    this.data = data;
    if (data && this.plot) this.plot.setData(data);
    else if (data) this.#make();
  }

  #size() {
    return { width: Math.max(this.place.clientWidth, 80), height: Math.max(this.place.clientHeight, 80) };
  }

  #make() {
    this.plot?.destroy();
    this.plot = null;
    if (!this.data) return;
    const common = { legend: { show: false }, cursor: { show: false }, padding: [10, 20, 0, 0] };
    this.plot = new uPlot({ ...common, ...this.#size(), ...this.options(colours()) }, this.data, this.place);
  }
}

function axis(theme, more) {
  const grid = { stroke: theme.line, width: 1 };
  return { stroke: theme.muted, font: `12px ${FONT}`, labelFont: `12px ${FONT}`, labelSize: 18, size: 28, grid,
    ticks: { show: false }, ...more };
}

const percents = (_, splits) => splits.map((value) => `${Math.round(100 * value)} %`);

const calibration = (theme) => ({
  scales: { x: { time: false, range: [0, 1] }, y: { range: [0, 1] } },
  axes: [
    axis(theme, { values: percents, label: "called similar with", incrs: [0.25, 0.5] }),
    axis(theme, { values: percents, label: "were similar", size: 48, incrs: [0.25, 0.5] }),
  ],
  series: [
    {},
    { stroke: theme.muted, width: 1, dash: [4, 4], points: { show: false } },
    { stroke: theme.accent, width: 2, spanGaps: true, points: { show: false } },
  ],
  hooks: { draw: [(plot) => dots(plot, theme)] },
});

/** The more pairs a point stands for, the larger it is; the counts come as data without a series. */
function dots(plot, theme) {
  const [x, , y, count] = plot.data;
  const most = Math.max(...count.map((value) => value ?? 0), 1);
  const { ctx } = plot;
  ctx.save();
  ctx.fillStyle = theme.accent;
  x.forEach((value, i) => {
    if (y[i] === null || y[i] === undefined) return;
    const radius = (2.5 + 4 * Math.sqrt(count[i] / most)) * (window.devicePixelRatio || 1);
    ctx.beginPath();
    ctx.arc(plot.valToPos(value, "x", true), plot.valToPos(y[i], "y", true), radius, 0, 2 * Math.PI);
    ctx.fill();
  });
  ctx.restore();
}

const curve = (theme) => ({
  scales: {
    x: { time: false, range: (_, low, high) => [Math.min(low ?? 0, 0), Math.max(high ?? 1, 10)] },
    y: { range: (_, low, high) => [0, Math.min(1, Math.max(0.5, (high ?? 0) * 1.08))] },
  },
  axes: [
    axis(theme, { label: "answers", space: 60, incrs: [1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000, 5000, 1e4] }),
    axis(theme, { values: percents, label: "not foreseen", size: 48, space: 36 }),
  ],
  series: [
    {},
    { stroke: theme.muted, width: 1, points: { show: true, size: 4, fill: theme.muted, width: 0 } },
    { stroke: theme.accent, width: 3, points: { show: false }, spanGaps: true },
    { stroke: theme.ink, width: 1, dash: [3, 4], points: { show: false } },
  ],
});

export class Charts {
  constructor() {
    this.calibration = new Chart("calibration", calibration);
    this.curve = new Chart("curve", curve);
  }

  calibrate({ calibration: bins, scores }) {
    const error = scores?.calibration_error ?? null;
    const known = bins.filter(({ count, similar }) => count > 0 && similar !== null);
    known.sort((p, q) => p.probability - q.probability);
    const x = [0, ...known.map(({ probability }) => probability), 1];
    const ends = (values) => [null, ...values, null];
    const data = [x, x, ends(known.map(({ similar }) => similar)), ends(known.map(({ count }) => count))];
    this.calibration.show(known.length ? data : null);
    if (!known.length) return;
    const off = error === null ? "" : `Off by ${percent(error)} in the mean. `;
    byId("calibration-words").textContent = `${off}On the dashed line, probabilities can be believed.`;
    const points = known.map((bin) => `of ${many(bin.count, "pair")} called ${percent(bin.probability)}, ${percent(bin.similar)}`);
    byId("calibration").setAttribute("aria-label", `Calibration, pairs that were similar: ${points.join("; ")}`);
  }

  learn({ curve: found }) {
    const { t = [], error = [], trend = [], target = null, words = "" } = found ?? {};
    const fill = (values) => t.map((_, i) => values[i] ?? null);
    this.curve.show(t.length ? [t, fill(error), fill(trend), t.map(() => target)] : null);
    byId("curve-words").textContent = words ?? "";
    if (!t.length) return;
    const last = percent(error.at(-1));
    const label = `Learning curve: ${last} not foreseen after ${many(t.at(-1), "answer")}. ${words ?? ""}`;
    byId("curve").setAttribute("aria-label", label);
  }
}
