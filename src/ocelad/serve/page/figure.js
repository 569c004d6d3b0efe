// Draws the map of the items on a canvas: points by colour and shape, rings, and the legend below.

import { colours, FONT } from "./theme.js";

const LEGEND = 26; // px kept free for it
const EDGE = 16;
const SHAPES = ["circle", "square", "triangle", "diamond", "cross", "star"];

/** The classes of a map: {title, of: class per item or -1, names, other, ramp: null or {from, to, part}}. */
export function classes(map, column) {
  if (!map.values) return { title: "group", ...grouped(map.group, (key) => String(key + 1), (key) => key < 0, "none yet") };
  const numbers = map.values.map((value) => (value === null || value === "" ? NaN : Number(value)));
  const known = numbers.filter(Number.isFinite);
  if (known.length > 0.9 * numbers.length && new Set(known).size > SHAPES.length) {
    const [from, to] = [quantile(known, 0.02), quantile(known, 0.98)];
    const part = numbers.map((value) => Math.max(0, Math.min(1, (value - from) / (to - from || 1))));
    return { of: part.map(() => 0), names: [], title: column, other: "", ramp: { from, to, part } };
  }
  return { title: column, ...grouped(map.values, String, (key) => key === null || key === "", "others") };
}

/** The most frequent keys get a colour and a shape each, in an order that stays; all others are grey. */
function grouped(keys, name, isOther, other) {
  const sizes = new Map();
  keys.filter((key) => !isOther(key)).forEach((key) => sizes.set(key, (sizes.get(key) ?? 0) + 1));
  const most = [...sizes].sort((p, q) => q[1] - p[1]).slice(0, SHAPES.length);
  const order = most.map(([key]) => key).sort((p, q) => (p > q ? 1 : -1));
  const rest = most.length < sizes.size && order.length ? "others" : other;
  return { of: keys.map((key) => order.indexOf(key)), names: order.map(name), other: rest, ramp: null };
}

export function quantile(values, share) {
  const sorted = Float64Array.from(values).sort();
  return sorted[Math.round(share * (sorted.length - 1))];
}

/** The middle and half the extent of most points: a few far ones do not squeeze all others together. */
export function limits(x, y) {
  const side = (values) => {
    const share = values.length < 50 ? 0 : 0.01;
    const [low, high] = [quantile(values, share), quantile(values, 1 - share)];
    return [(low + high) / 2, Math.max((high - low) / 2, 1e-12)];
  };
  const [[cx, hx], [cy, hy]] = [side(x), side(y)];
  return { cx, cy, hx, hy };
}

/** Where the points are on a canvas of this size; both axes have the same scale, as distances have a meaning. */
export function project({ x, y, limits: { cx, cy, hx, hy } }, width, height) {
  const [w, h] = [width / 2 - EDGE, (height - LEGEND) / 2 - EDGE];
  const scale = Math.min(w / hx, h / hy);
  const clamp = (value, most) => Math.max(-most - 8, Math.min(most + 8, value));
  return {
    px: x.map((value) => w + EDGE + clamp((value - cx) * scale, w)),
    py: y.map((value) => h + EDGE - clamp((value - cy) * scale, h)),
  };
}

export function draw(context, width, height, points, kinds, ringed) {
  const theme = colours();
  const { px, py } = points;
  context.clearRect(0, 0, width, height);
  context.fillStyle = theme.surface;
  context.fillRect(0, 0, width, height);
  const radius = px.length <= 150 ? 5 : px.length <= 600 ? 4 : 3;
  for (const colored of [false, true]) {
    for (let i = 0; i < px.length; i += 1) {
      const kind = kinds.of[i];
      if (kind >= 0 !== colored) continue; // grey ones lie below
      context.fillStyle = shade(kinds, i, theme);
      mark(context, px[i], py[i], kind < 0 ? radius * 0.75 : radius, kind < 0 || kinds.ramp ? "circle" : SHAPES[kind]);
    }
  }
  ringed.forEach((i, k) => ring(context, px[i], py[i], radius + 5, "AB"[k], theme, width));
  legend(context, width, height, kinds, theme);
}

function shade(kinds, i, theme) {
  if (kinds.of[i] < 0) return theme.muted;
  return kinds.ramp ? mixed(theme.low, theme.high, kinds.ramp.part[i]) : theme.palette[kinds.of[i]];
}

function mixed(low, high, part) {
  if (!Number.isFinite(part)) return colours().muted;
  const channel = (hex, i) => Number.parseInt(hex.slice(1 + 2 * i, 3 + 2 * i), 16);
  return `rgb(${[0, 1, 2].map((i) => Math.round(channel(low, i) * (1 - part) + channel(high, i) * part)).join(" ")})`;
}

const CORNERS = {
  square: [[-0.9, -0.9], [0.9, -0.9], [0.9, 0.9], [-0.9, 0.9]],
  triangle: [[0, -1.2], [1.1, 0.8], [-1.1, 0.8]],
  diamond: [[0, -1.3], [1.1, 0], [0, 1.3], [-1.1, 0]],
  cross: [[-0.4, -1.1], [0.4, -1.1], [0.4, -0.4], [1.1, -0.4], [1.1, 0.4], [0.4, 0.4], [0.4, 1.1], [-0.4, 1.1],
    [-0.4, 0.4], [-1.1, 0.4], [-1.1, -0.4], [-0.4, -0.4]],
  star: Array.from({ length: 10 }, (_, i) => {
    const [angle, far] = [(Math.PI * i) / 5, i % 2 ? 0.55 : 1.35];
    return [far * Math.sin(angle), -far * Math.cos(angle)];
  }),
};

function mark(context, x, y, radius, shape) {
  context.beginPath();
  if (shape === "circle") context.arc(x, y, radius, 0, 2 * Math.PI);
  else CORNERS[shape].forEach(([u, v], i) => (i ? context.lineTo : context.moveTo).call(context, x + u * radius, y + v * radius));
  context.fill();
}

function ring(context, x, y, radius, letter, theme, width) {
  context.lineWidth = 2;
  context.strokeStyle = theme.ink;
  context.beginPath();
  context.arc(x, y, radius, 0, 2 * Math.PI);
  context.stroke();
  context.font = `600 13px ${FONT}`;
  context.textBaseline = "middle";
  const side = x > width - 36 ? -1 : 1;
  context.textAlign = side > 0 ? "left" : "right";
  context.lineWidth = 3;
  context.strokeStyle = theme.surface;
  context.strokeText(letter, x + side * (radius + 4), y);
  context.fillStyle = theme.ink;
  context.fillText(letter, x + side * (radius + 4), y);
}

function legend(context, width, height, kinds, theme) {
  const y = height - LEGEND / 2;
  let x = EDGE;
  context.font = `12px ${FONT}`;
  context.textAlign = "left";
  context.textBaseline = "middle";
  const write = (text, room, gap = 14) => {
    const shown = shortened(context, text, room);
    context.fillStyle = theme.muted;
    context.fillText(shown, x, y);
    x += context.measureText(shown).width + gap;
  };
  write(kinds.title, width / 4);
  if (kinds.ramp) {
    write(short(kinds.ramp.from), width / 4, 8);
    for (let i = 0; i < 60; i += 1) {
      context.fillStyle = mixed(theme.low, theme.high, i / 59);
      context.fillRect(x + 1.5 * i, y - 5, 1.5, 10);
    }
    x += 98;
    write(short(kinds.ramp.to), width - x);
    return;
  }
  const entries = kinds.names.map((name, i) => [name, i]);
  if (kinds.of.includes(-1)) entries.push([kinds.other, -1]);
  const full = entries.reduce((sum, [name]) => sum + context.measureText(name).width + 28, 0);
  const room = full <= width - x - EDGE ? Infinity : (width - x - EDGE) / entries.length - 28;
  for (const [name, i] of entries) {
    context.fillStyle = i < 0 ? theme.muted : theme.palette[i];
    mark(context, x + 4, y, i < 0 ? 3.5 : 4.5, i < 0 ? "circle" : SHAPES[i]);
    x += 14;
    write(name, room);
  }
}

const short = (number) => String(Number(number.toPrecision(3)));

function shortened(context, text, room) {
  if (context.measureText(text).width <= room) return text;
  let end = text.length;
  while (end > 1 && context.measureText(`${text.slice(0, end)}…`).width > room) end -= 1;
  return `${text.slice(0, end)}…`;
}
