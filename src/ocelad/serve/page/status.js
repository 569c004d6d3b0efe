// Says whether the answers are saved, in words that stay polite while all goes well.

import { many } from "./theme.js";

const CALM = 200; // ms before "saving…" is shown: what is saved at once need not flicker

const byId = (id) => document.getElementById(id);
let timer = null;
let troubled = false;

export function showStatus(answers, say) {
  const { pending, trouble } = answers;
  document.body.dataset.pending = pending;
  document.body.dataset.answered = answers.acknowledged;
  clearTimeout(timer);
  if (trouble && pending) set("trouble", reason(trouble, pending));
  else if (pending) timer = setTimeout(() => set("saving", "saving…"), CALM);
  else set("saved", answers.count || answers.acknowledged ? "saved" : "answers are saved at once");
  const now = Boolean(trouble && pending);
  if (now !== troubled && (now || !pending)) {
    say(now ? reason(trouble, pending) : "All answers are saved.");
    troubled = now;
  }
}

function set(kind, words) {
  byId("status").className = `status ${kind}`;
  if (byId("status-words").textContent !== words) byId("status-words").textContent = words;
}

function reason(problem, count) {
  const wait = `${many(count, "answer")} ${count === 1 ? "waits" : "wait"} here`;
  if (problem.status === 0) return `no connection, ${wait}`;
  if (problem.status === 401 || problem.status === 403) return `not signed in, ${wait}`;
  if (problem.status === 429) return `the service is busy, ${wait}`;
  return `the service refuses for now (${problem.message}), ${wait}`;
}
