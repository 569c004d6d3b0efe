// The panels of bars and numbers: features, time-scales, foreseen answers, counts, groups and people.

import { element } from "./pair.js";
import { many, percent } from "./theme.js";

const ROWS = 8;
const byId = (id) => document.getElementById(id);

export function showPanels(state, me) {
  const features = [...state.features].sort((p, q) => q.share - p.share);
  bars("features", features.slice(0, ROWS).map(({ name, share }) => [name, share]), features[0]?.share);
  bars("experts", heaviest(state.experts));
  foreseen(state);
  figures("counts", counts(state));
  figures("people", [...groups(state.groups), ...people(state.agreement, me)]);
}

/** The heaviest experts, in the order of their time-scales; the rest as one. */
function heaviest(given) {
  const experts = [...given].sort((p, q) => (p.length ?? 0) - (q.length ?? 0));
  if (experts.length <= ROWS) return experts.map(({ name, weight }) => [name, weight]);
  const weights = experts.map(({ weight }) => weight).sort((p, q) => q - p);
  const kept = [];
  let rest = 0;
  for (const { name, weight } of experts) {
    if (kept.length < ROWS - 1 && weight >= weights[ROWS - 2]) kept.push([name, weight]);
    else rest += weight;
  }
  return [...kept, [`${experts.length - kept.length} others`, rest]];
}

/** The rows are made once and then changed, so that nothing moves but the bars; `most` fills a bar. */
function bars(id, rows, most = 1) {
  const list = byId(id);
  list.parentElement.classList.toggle("filled", rows.length > 0);
  while (list.children.length < ROWS) {
    list.append(element("li", "", element("span", "of"), element("span", "bar"), element("span", "share")));
  }
  [...list.children].forEach((item, i) => {
    const [name, bar, share] = item.children;
    const row = rows[i];
    item.hidden = !row;
    if (!row) return;
    if (name.textContent !== row[0]) name.textContent = name.title = row[0];
    share.textContent = percent(row[1]);
    bar.style.setProperty("--part", Math.max(0, Math.min(1, row[1] / (most || 1))).toFixed(3));
  });
}

function foreseen({ foreseen: { share, of }, scores }) {
  byId("foreseen-share").textContent = percent(of ? share : null);
  const majority = scores?.majority ?? null;
  const words = [`of the last ${many(of, "answer")}.`];
  if (majority !== null) words.push(`Always saying the more frequent one: ${percent(majority)}.`);
  byId("foreseen-of").textContent = of ? words.join(" ") : "How often the tracker knew your answer beforehand.";
}

function counts({ counts: { similar, different, unsure, undone, implied } }) {
  return [
    ["similar", similar],
    ["different", different],
    ["unsure", unsure],
    ["undone", undone],
    ["follow from these", implied],
  ];
}

function groups(found) {
  if (!found?.groups) return [["groups", "none yet"]];
  const sizes = found.sizes.slice(0, 6).join(", ") + (found.sizes.length > 6 ? ", …" : "");
  return [
    ["groups", String(found.groups)],
    ["their sizes", sizes],
    ["items placed", `${found.placed} of ${found.items}`],
  ];
}

function people(agreement, me) {
  const names = agreement?.people ?? [];
  if (names.length < 2) return [["people", names.length ? "you alone" : "none yet"]];
  const most = [...names].sort((p, q) => q.answers - p.answers).slice(0, 3);
  const who = most.map(({ by, answers }) => `${by === me ? "you" : by || "no name"} ${answers}`).join(", ");
  const rows = [[`${names.length} people`, who + (names.length > 3 ? ", …" : "")]];
  if (!agreement.pairs) return [...rows, ["agreement", "no pair twice yet"]];
  const alpha = (agreement.alpha ?? null) === null ? "" : `, alpha ${agreement.alpha.toFixed(2)}`;
  return [...rows, ["agreement", `${percent(agreement.share)} of ${many(agreement.pairs, "pair")}${alpha}`]];
}

function figures(id, rows) {
  const parts = rows.map(([name, value]) => element("div", "", element("dt", "", name), element("dd", "", String(value))));
  byId(id).replaceChildren(...parts);
}
