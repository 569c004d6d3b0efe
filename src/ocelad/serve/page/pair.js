// Shows the two items of a question side by side: texts, pictures, or the cells of two table rows.
//
// What an item says is inserted as text only, so that HTML or a script in it is shown and does nothing.

import { ownUrl } from "./questions.js";

/** An element with a class and children; strings become text. */
export function element(tag, className = "", ...children) {
  const node = document.createElement(tag);
  if (className) node.className = className;
  node.append(...children);
  return node;
}

const LARGE = 40; // letters of a cell that is shown large

const words = (item) => item.text ?? (item.cells?.length ? null : String(item.id));

/** Replaces what `stage` holds by the question. */
export function showPair(stage, question) {
  const { a, b } = question;
  const parts = [];
  if (a.image || b.image || words(a) !== null || words(b) !== null) {
    parts.push(element("div", "cards", card("A", a), card("B", b)));
  }
  if (a.cells?.length || b.cells?.length) parts.push(cells(a, b, parts.length > 0));
  stage.replaceChildren(...parts);
  stage.className = `stage ${parts.length > 1 ? "both" : ""}`;
  requestAnimationFrame(() => reachable(stage));
}

/** Keeps what must be scrolled in reach, also when the window changes its size. */
export function watchSize(stage) {
  new ResizeObserver(() => reachable(stage)).observe(stage);
}

function card(letter, item) {
  const name = element("h3", "name", element("span", "letter", letter), element("span", "id", String(item.id)));
  return element("article", "card", name, item.image ? picture(item) : text(item));
}

function text(item) {
  const said = words(item) ?? "";
  const size = said.length <= 60 ? "short" : said.length <= 320 ? "medium" : "long";
  const body = element("div", `text ${size} scroll`, element("p", "", said));
  body.dataset.label = `Text of ${item.id}`;
  return body;
}

function picture(item) {
  const frame = element("div", "picture");
  const failed = () => frame.replaceChildren(element("p", "missing", `The picture of ${item.id} cannot be shown.`));
  if (!ownUrl(item.image)) {
    failed();
    return frame;
  }
  const image = document.createElement("img");
  image.alt = item.text ?? `Picture of ${item.id}`;
  image.decoding = "sync"; // it was decoded ahead: let it come with the frame that shows the question
  image.draggable = false;
  image.addEventListener("error", failed);
  // few pixels, scanned digits for instance, are clearer as squares than as a blur
  const sharpen = () => image.classList.toggle("pixels", image.naturalWidth > 0 && image.naturalWidth <= 64);
  image.addEventListener("load", sharpen);
  image.src = item.image;
  sharpen();
  frame.append(image);
  return frame;
}

/** The cells of both, a row per column; rows in which they differ are marked by a sign, weight and tint. */
function cells(a, b, below) {
  const [left, right] = [new Map(a.cells), new Map(b.cells)];
  const names = [...new Set([...left.keys(), ...right.keys()])];
  const head = element(
    "tr",
    "",
    element("td"),
    column("A", a),
    element("td"),
    column("B", b),
  );
  const rows = names.map((name) => {
    const [p, q] = [left.get(name) ?? "–", right.get(name) ?? "–"].map(String);
    const title = element("th", "", name);
    title.scope = "row";
    const sign = element("td", "sign");
    if (p !== q) sign.append("≠");
    return element("tr", p === q ? "equal" : "differs", title, element("td", "", p), sign, element("td", "", q));
  });
  const caption = element("caption", "hidden", "The two items; the sign ≠ marks what differs.");
  const table = element("table", "cells", caption, element("thead", "", head), element("tbody", "", ...rows));
  const longest = Math.max(...[...a.cells, ...b.cells].map(([, value]) => String(value).length));
  const roomy = !below && names.length <= 6 && longest <= LARGE;
  const frame = element("div", `table scroll ${roomy ? "roomy" : ""}`, table);
  frame.dataset.label = "Cells of the two items";
  return frame;
}

function column(letter, item) {
  const title = element("th", "", element("span", "letter", letter), element("span", "id", String(item.id)));
  title.scope = "col";
  return title;
}

/** What must be scrolled can be reached by keyboard. */
function reachable(stage) {
  for (const node of stage.querySelectorAll(".scroll")) {
    if (node.scrollHeight <= node.clientHeight) continue;
    node.tabIndex = 0;
    node.setAttribute("role", "group");
    node.setAttribute("aria-label", node.dataset.label ?? "Message");
  }
}

/** The question as a screen reader hears it. */
export function spoken({ a, b }) {
  const one = (item) => {
    const parts = [item.text ?? "", ...(item.cells ?? []).map(([name, value]) => `${name} ${value}`)].filter(Boolean);
    const all = [item.id, ...parts].join(", ");
    return all.length > 300 ? `${all.slice(0, 300)}…` : all;
  };
  return `A: ${one(a)}. B: ${one(b)}.`;
}
