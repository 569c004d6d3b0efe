// The answers on their way: sent in order, kept in the browser until acknowledged, taken back by undo.
//
// An answer carries a request_id by which the service knows it again. So it may be sent as often as need be, after a
// lost connection, a reload or a crash, and counts once.

import { local, randomId, session } from "./store.js";

const DEPTH = 500; // answers that can be taken back
const LONGEST = 10_000; // ms between two attempts
const PATHS = { comparison: "comparisons", skip: "skips", change: "changes" };

export const pairKey = ({ a, b }) => JSON.stringify([a.id, b.id].sort());

export class Answers {
  /** `on.changed()` after any change, `on.acknowledged(entry, ms)`, `on.refused(entry, problem)`. */
  constructor(api, on) {
    this.api = api;
    this.on = on;
    this.prefix = `ocelad.answer.${api.stream}.`;
    this.undoPrefix = `ocelad.undo.${api.stream}.`;
    this.stack = restored(session, this.undoPrefix); // what undo takes back, also after a reload
    // what an earlier page left unsent; another tab may be sending it, too, but it counts once
    this.queue = restored(local, this.prefix).map((entry) => ({ ...entry, tried: true, adopted: true }));
    this.trouble = null; // the Problem that keeps the queue waiting
    this.failures = 0;
    this.acknowledged = 0;
    this.given = new Map(); // pair -> when it was answered here, so that it is not asked again at once
    this.wake = () => {};
    window.addEventListener("online", () => this.wake());
  }

  start() {
    this.#run();
  }

  get pending() {
    return this.queue.length;
  }

  /** How many questions were answered here and not taken back. */
  get count() {
    return this.stack.filter((entry) => entry.question).length;
  }

  /** Is this pair on its way, or was it answered since `time` or within the last two seconds? */
  knows(question, time) {
    const key = pairKey(question);
    if (this.queue.some((entry) => entry.question && pairKey(entry.question) === key)) return true;
    const given = this.given.get(key);
    return given !== undefined && given > Math.min(time, performance.now() - 2000);
  }

  /** `start` is when the key went down, for the time until it is acknowledged. */
  add(kind, question, y, by, start) {
    const request_id = randomId();
    const body = { request_id, by };
    if (question) Object.assign(body, { a: question.a.id, b: question.b.id });
    if (kind === "comparison") body.y = y;
    const answered = { request_id, kind, question, body, id: null, at: moment() };
    this.stack.push(answered);
    session.set(this.undoPrefix + request_id, answered);
    if (this.stack.length > DEPTH) session.remove(this.undoPrefix + this.stack.shift().request_id);
    if (question) this.given.set(pairKey(question), performance.now());
    this.#push({ request_id, kind, body, question: question && bare(question), start });
  }

  /** Takes the last answer back and returns it, or null if there is none. */
  undo() {
    const last = this.stack.pop();
    if (!last) return null;
    session.remove(this.undoPrefix + last.request_id);
    if (last.question) this.given.delete(pairKey(last.question));
    const waiting = this.queue.find((entry) => entry.request_id === last.request_id);
    if (waiting && !waiting.tried) this.#drop(waiting); // it never left: nobody needs to know
    else this.#push({ request_id: randomId(), kind: "undo", of: last.request_id, id: last.id, first: last.kind, body: last.body });
    this.on.changed();
    return last;
  }

  #push(entry) {
    entry.at = moment();
    this.queue.push(entry);
    this.#keep(entry);
    this.on.changed();
    this.#run();
  }

  #keep(entry) {
    const { start, tried, adopted, ...kept } = entry;
    local.set(this.prefix + entry.request_id, kept);
  }

  #drop(entry) {
    this.queue = this.queue.filter((other) => other !== entry);
    local.remove(this.prefix + entry.request_id);
  }

  async #run() {
    if (this.running) return;
    this.running = true;
    while (this.queue.length) {
      const entry = this.queue[0];
      // another tab has sent it or taken it back
      if (entry.adopted && local.get(this.prefix + entry.request_id) === null) this.#drop(entry);
      else await this.#send(entry);
    }
    this.running = false;
    this.on.changed();
  }

  async #send(entry) {
    try {
      entry.tried = true;
      if (entry.kind !== "undo") this.#acknowledge(entry, await this.api.post(PATHS[entry.kind], entry.body));
      else this.#acknowledge(entry, await this.api.undo(entry.id ?? (await this.#number(entry)), entry.body.by));
    } catch (problem) {
      if (problem.passing) await this.#pause(problem);
      else this.#refuse(entry, problem);
    }
  }

  /** The number of what is taken back, if another tab has sent it: it is known by its request_id. */
  async #number(entry) {
    return (await this.api.post(PATHS[entry.first], entry.body)).id;
  }

  #acknowledge(entry, answer) {
    this.trouble = null;
    this.failures = 0;
    if (entry.kind !== "undo") {
      for (const undo of this.queue.filter((other) => other.of === entry.request_id)) {
        undo.id = answer.id;
        this.#keep(undo);
      }
      const answered = this.stack.find((other) => other.request_id === entry.request_id);
      if (answered) {
        answered.id = answer.id;
        session.set(this.undoPrefix + answered.request_id, answered);
      }
    }
    this.#drop(entry);
    if (entry.question) this.acknowledged += 1;
    this.on.acknowledged(entry, entry.start === undefined ? null : performance.now() - entry.start);
    this.on.changed();
  }

  #refuse(entry, problem) {
    this.trouble = null;
    this.#drop(entry);
    this.queue.filter((other) => other.of === entry.request_id).forEach((undo) => this.#drop(undo));
    this.stack = this.stack.filter((other) => other.request_id !== entry.request_id);
    session.remove(this.undoPrefix + entry.request_id);
    this.on.refused(entry, problem);
    this.on.changed();
  }

  async #pause(problem) {
    this.trouble = problem;
    const backoff = Math.min(LONGEST, 400 * 2 ** this.failures) * (0.75 + Math.random() / 2);
    this.failures += 1;
    this.on.changed();
    await new Promise((resolve) => {
      this.wake = resolve;
      setTimeout(resolve, problem.retryAfter === null ? backoff : problem.retryAfter * 1000);
    });
  }
}

/** The ids alone: texts may be long, and the browser keeps few megabytes. */
function bare({ a, b }) {
  return { a: { id: a.id }, b: { id: b.id } };
}

function restored(store, prefix) {
  const entries = store.keys(prefix).map((key) => store.get(key));
  return entries.filter((entry) => entry?.request_id && entry.kind).sort((p, q) => p.at - q.at);
}

let latest = 0;

/** When it is, in ms; later at every call, so that answers of the same millisecond keep their order. */
function moment() {
  latest = Math.max(Date.now(), latest + 0.01);
  return latest;
}
