// The question asked now and those fetched ahead, so that the next one is there at the key press.

import { pairKey } from "./answers.js";

const AHEAD = 3; // fetch when fewer are at hand: two, at the least, while a request is under way
const COUNT = 4; // the most that the service gives at once; some of them may be at hand already
const AGAIN = 5_000; // ms until it is asked again whether all is known

export class Questions {
  /** `who()` gives {by, aim}; `answers` knows what was just answered; `on.arrived()` if nothing was shown so far. */
  constructor(api, answers, who, on) {
    Object.assign(this, { api, answers, who, on, current: null, ahead: [], done: false, problem: null });
    this.generation = 0;
    this.failures = 0;
    this.images = new Map(); // kept alive, so that they are decoded when shown
  }

  /** Goes on to the next question, which may be null until it arrives. */
  advance() {
    this.current = this.ahead.shift() ?? null;
  }

  /** Asks a question again; the one that was asked comes after it. */
  back(question) {
    if (this.current) this.ahead.unshift(this.current);
    this.current = question;
  }

  /** Fetches anew what comes after the current question: the person or the aim is another. */
  renew() {
    this.generation += 1;
    this.asking = false;
    this.ahead = [];
    this.refill();
  }

  async refill() {
    if (this.asking || this.ahead.length >= AHEAD) return;
    clearTimeout(this.timer);
    this.asking = true;
    const { generation } = this;
    const time = performance.now();
    let wait = null;
    try {
      const answer = await this.api.get("next", { ...this.who(), count: COUNT });
      if (generation !== this.generation) return;
      const fresh = this.#fresh(answer.questions, time);
      this.ahead.push(...fresh);
      fresh.forEach((question) => this.#preload(question));
      this.done = answer.done && !fresh.length && !this.answers.pending;
      this.problem = null;
      this.failures = fresh.length ? 0 : this.failures + 1;
      if (answer.done) wait = AGAIN;
      else if (!fresh.length) wait = Math.min(2000, 100 * 2 ** this.failures);
    } catch (problem) {
      if (generation !== this.generation) return;
      this.problem = problem;
      this.failures += 1;
      wait = problem.retryAfter === null ? Math.min(8000, 400 * 2 ** this.failures) : problem.retryAfter * 1000;
    }
    this.asking = false;
    if (!this.current) {
      this.advance();
      this.on.arrived();
    }
    if (wait !== null) this.timer = setTimeout(() => this.refill(), wait);
    else this.refill();
  }

  /** Those that are neither at hand nor just answered: the service may not know yet of answers on their way. */
  #fresh(questions, time) {
    const known = new Set([this.current, ...this.ahead].filter(Boolean).map(pairKey));
    return questions.filter((question) => {
      const key = pairKey(question);
      const fresh = !known.has(key) && !this.answers.knows(question, time);
      known.add(key);
      return fresh;
    });
  }

  #preload({ a, b }) {
    for (const url of [a.image, b.image].filter(Boolean)) {
      if (this.images.has(url) || !ownUrl(url)) continue;
      const image = new Image();
      image.src = url;
      image.decode().catch(() => {}); // the card says it if a picture cannot be shown
      this.images.set(url, image);
      if (this.images.size > 24) this.images.delete(this.images.keys().next().value);
    }
  }
}

/** Pictures come from this service alone. */
export function ownUrl(url) {
  try {
    return new URL(url, location.href).origin === location.origin;
  } catch {
    return false;
  }
}
