// The map panel: fetches the embedding when it has changed, moves the points to their new places, and answers a pointer.

import { classes, draw, limits, project } from "./figure.js";
import { element } from "./pair.js";
import { colours, FONT, many, motionless } from "./theme.js";

const APART = 700; // ms between two requests at least
const MOVE = 400; // ms of movement
const MOST = 2000; // points
const REACH = 14; // px around a point
const ROWS = 200; // of the table

const byId = (id) => document.getElementById(id);

export class ItemMap {
  constructor(api) {
    this.api = api;
    this.canvas = byId("map");
    this.body = byId("map-body");
    this.tip = byId("map-tip");
    this.map = null;
    this.shown = null; // {x, y, limits} as drawn now, between two maps while moving
    this.pair = [];
    this.version = null;
    byId("color").addEventListener("change", () => this.refresh(true));
    byId("map-details").addEventListener("toggle", () => this.#table());
    this.body.addEventListener("pointermove", (event) => this.#hover(event));
    this.body.addEventListener("pointerdown", (event) => this.#hover(event));
    this.body.addEventListener("pointerleave", () => this.#hover(null));
    new ResizeObserver(() => this.#fit()).observe(this.body);
  }

  columns(names) {
    byId("color").append(...names.map((name) => {
      const option = element("option", "", name);
      option.value = name;
      return option;
    }));
  }

  /** Rings the two items that are compared. */
  compare(question) {
    this.pair = question ? [question.a.id, question.b.id] : [];
    this.redraw();
  }

  update(version) {
    if (version === this.version) return;
    this.version = version;
    this.refresh();
  }

  /** At most one request at a time, and not more often than APART; the last wish is always granted. */
  async refresh(now = false) {
    if (this.asking) {
      this.again = true;
      return;
    }
    this.asking = true;
    const wait = now ? 0 : (this.asked ?? -APART) + APART - performance.now();
    if (wait > 0) await new Promise((resolve) => setTimeout(resolve, wait));
    this.asked = performance.now();
    this.again = false;
    try {
      this.#take(await this.api.get("map", { limit: MOST, color: byId("color").value }));
    } catch {
      this.version = null; // nothing to draw yet, or no connection: the next state asks again
    }
    this.asking = false;
    if (this.again) this.refresh();
  }

  #take(map) {
    byId("map-empty").hidden = map.ids.length > 0;
    if (!map.ids.length) return;
    const before = this.map && new Map(this.map.ids.map((id, i) => [id, i]));
    this.index = new Map(map.ids.map((id, i) => [id, i]));
    const target = { x: map.x, y: map.y, limits: limits(map.x, map.y) };
    const was = this.shown;
    const place = (axis) => map.ids.map((id, i) => (before?.has(id) ? was[axis][before.get(id)] : target[axis][i]));
    const from = was && { x: place("x"), y: place("y"), limits: was.limits };
    this.map = map;
    this.kinds = classes(map, byId("color").value);
    this.shown = from ?? target;
    this.#describe();
    this.#table();
    this.#move(from, target);
  }

  #move(from, target) {
    cancelAnimationFrame(this.frame);
    if (!from || motionless() || document.hidden) {
      this.shown = target;
      this.redraw();
      return;
    }
    const start = performance.now();
    const step = (now) => {
      const part = Math.max(0, Math.min(1, (now - start) / MOVE));
      const eased = part * part * (3 - 2 * part);
      const mix = (p, q) => p + (q - p) * eased;
      this.shown = part === 1 ? target : {
        x: target.x.map((value, i) => mix(from.x[i], value)),
        y: target.y.map((value, i) => mix(from.y[i], value)),
        limits: Object.fromEntries(Object.keys(target.limits).map((k) => [k, mix(from.limits[k], target.limits[k])])),
      };
      this.#draw();
      if (part < 1) this.frame = requestAnimationFrame(step);
    };
    this.frame = requestAnimationFrame(step);
  }

  #fit() {
    const { width, height } = this.body.getBoundingClientRect();
    const ratio = window.devicePixelRatio || 1;
    [this.width, this.height] = [width, height];
    this.canvas.width = Math.round(width * ratio);
    this.canvas.height = Math.round(height * ratio);
    this.#draw();
  }

  /** Many wishes within a frame are one drawing. */
  redraw() {
    this.wished ??= requestAnimationFrame(() => {
      this.wished = undefined;
      this.#draw();
    });
  }

  #draw() {
    if (!this.map || !this.width) return;
    const ratio = window.devicePixelRatio || 1;
    const context = this.canvas.getContext("2d");
    context.setTransform(ratio, 0, 0, ratio, 0, 0);
    this.points = project(this.shown, this.width, this.height);
    draw(context, this.width, this.height, this.points, this.kinds, this.#ringed());
  }

  #ringed() {
    return this.pair.filter((id) => this.index?.has(id)).map((id) => this.index.get(id));
  }

  #hover(event) {
    let nearest = -1;
    if (event && this.points) {
      const box = this.body.getBoundingClientRect();
      const [x, y] = [event.clientX - box.left, event.clientY - box.top];
      let least = REACH * REACH;
      this.points.px.forEach((px, i) => {
        const far = (px - x) ** 2 + (this.points.py[i] - y) ** 2;
        if (far < least) [least, nearest] = [far, i];
      });
    }
    this.tip.classList.toggle("shown", nearest >= 0);
    if (nearest < 0) return;
    this.tip.textContent = `${this.map.labels?.[nearest] ?? this.map.ids[nearest]} · ${this.#kind(nearest)}`;
    const [x, y] = [this.points.px[nearest], this.points.py[nearest]];
    const left = Math.max(4, Math.min(this.width - this.tip.offsetWidth - 4, x + 10));
    this.tip.style.transform = `translate(${left}px, ${y > 44 ? y - 40 : y + 14}px)`; // moves without a new layout
  }

  #kind(i) {
    if (this.map.values) return `${byId("color").value} ${this.map.values[i] ?? "–"}`;
    return this.map.group[i] < 0 ? "no group yet" : `group ${this.map.group[i] + 1}`;
  }

  /** In numbers what the picture shows. */
  #describe() {
    const { ids, t, group } = this.map;
    const groups = new Set(group.filter((key) => key >= 0)).size;
    const words = `Map of ${many(ids.length, "item")} after ${many(t, "answer")}, ${many(groups, "group")}`;
    this.canvas.setAttribute("aria-label", `${words}. Below it is a table of the same.`);
  }

  #table() {
    if (!this.map || !byId("map-details").open) return;
    const { ids, x, y, values } = this.map;
    const head = ["item", "x", "y", byId("color").value || "group"].map((name) => {
      const cell = element("th", "", name);
      cell.scope = "col";
      return cell;
    });
    const rows = ids.slice(0, ROWS).map((id, i) => {
      const cells = [id, x[i].toFixed(2), y[i].toFixed(2), values ? (values[i] ?? "–") : this.#kind(i)];
      return element("tr", "", ...cells.map((cell) => element("td", "", String(cell))));
    });
    const parts = [element("table", "", element("thead", "", element("tr", "", ...head)), element("tbody", "", ...rows))];
    if (ids.length > ROWS) parts.push(element("p", "under", `The first ${ROWS} of ${ids.length}; items.csv has all.`));
    byId("map-table").replaceChildren(...parts);
  }

  /** The figure as a PNG with a title, twice as fine as the screen needs it; null if there is none yet. */
  picture(title) {
    if (!this.map) return Promise.resolve(null);
    const [width, height, top] = [900, 640, 48];
    const canvas = element("canvas");
    [canvas.width, canvas.height] = [2 * width, 2 * (height + top)];
    const context = canvas.getContext("2d");
    const theme = colours();
    context.fillStyle = theme.surface;
    context.fillRect(0, 0, canvas.width, canvas.height);
    context.setTransform(2, 0, 0, 2, 0, 2 * top);
    draw(context, width, height, project(this.shown, width, height), this.kinds, []);
    context.fillStyle = theme.ink;
    context.font = `600 18px ${FONT}`;
    context.textAlign = "left";
    context.fillText(`${title}: ${many(this.map.ids.length, "item")} after ${many(this.map.t, "answer")}`, 16, 26 - top);
    return new Promise((resolve) => canvas.toBlob(resolve, "image/png"));
  }
}
