// Notes in the margin: when the notion changed, by itself or because you said so, and contradictions.

import { element } from "./pair.js";

const MOST = 40;
const name = (y) => (y > 0 ? "similar" : "different");

export class Notes {
  /** `say(text)` tells a screen reader. */
  constructor(list, say) {
    this.list = list;
    this.say = say;
    this.own = []; // what this page has to say: refused answers
    this.seen = null;
    this.state = { alarms: [], changes: [], contradictions: [] };
    this.#draw([]);
  }

  add(title, detail) {
    this.own.unshift({ title, detail, kind: "trouble" });
    this.say(`${title}: ${detail}`);
    this.#draw(this.#all());
  }

  update(state, me) {
    this.state = state;
    this.me = me;
    const notes = this.#all();
    const keys = notes.map(({ key }) => key);
    if (String(keys) === String(this.keys)) return;
    this.keys = keys;
    this.#draw(notes);
    const fresh = notes.find(({ key }) => key && this.seen && !this.seen.has(key));
    if (fresh) this.say(`${fresh.title}. ${fresh.detail}`);
    this.seen = new Set([...(this.seen ?? []), ...keys]); // what was there at the start is not said
  }

  #all() {
    const alarms = this.state.alarms.map((event) => ({ ...alarm(event), order: event.t, key: `t${event.t}` }));
    const others = this.state.contradictions.map((found) => ({
      ...contradiction(found, this.me),
      order: found.id,
      key: `c${found.id}`,
    }));
    const changes = this.state.changes.map((found) => ({ ...change(found, this.me), order: found.id, key: `d${found.id}` }));
    return [...this.own, ...[...alarms, ...changes, ...others].sort((p, q) => q.order - p.order)].slice(0, MOST);
  }

  #draw(notes) {
    const empty = "If the notion of similarity changes, or an answer contradicts earlier ones, it says so here.";
    const items = notes.map(({ title, detail, kind }) =>
      element("li", kind, element("strong", "", title), element("span", "", detail)),
    );
    this.list.replaceChildren(...(items.length ? items : [element("li", "none", element("span", "", empty))]));
  }
}

function change({ t, by }, me) {
  const who = by === me ? "You judge" : `${by || "Someone"} judges`;
  const detail = "What was said before implies nothing any more, and may be asked again. Undo takes this back.";
  return { title: `${who} differently since answer ${t}`, detail, kind: "alarm" };
}

function alarm({ t, kind, onset }) {
  const title = kind === "drift" ? `The notion drifts since about answer ${onset}` : `The notion jumped near answer ${onset}`;
  return { title, detail: `Noticed at answer ${t}.`, kind: "alarm" };
}

function contradiction({ a, b, y, by, before }, me) {
  const pair = a === null || b === null ? "" : `${a} and ${b}: `;
  const now = `now ${name(y)}${by && by !== me ? ` (${by})` : ""}`;
  if (before.id === null) return { title: "Earlier answers together say otherwise", detail: `${pair}${now}.`, kind: "other" };
  const who = before.by === me ? "You" : before.by || "Someone";
  return { title: `${who} said otherwise before`, detail: `${pair}${now}, before ${name(before.y)}.`, kind: "other" };
}
