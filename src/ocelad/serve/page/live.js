// Follows the state of the stream: by server-sent events, or by asking every three seconds where these fail.

const EVERY = 3_000; // ms between two questions
const REOPEN = 20_000; // ms until a closed stream of events is tried again

export function follow(api, receive) {
  let polling = null;
  let last = null;

  const take = (state) => {
    const text = JSON.stringify(state);
    if (text !== last) receive(state);
    last = text;
  };

  const ask = () => api.get("state").then(take, () => {}); // the answers' status tells of a lost connection

  const poll = (on) => {
    if (on && polling === null) polling = setInterval(ask, EVERY);
    if (!on && polling !== null) {
      clearInterval(polling);
      polling = null;
    }
  };

  const open = () => {
    const source = new EventSource(api.url("events"));
    source.addEventListener("open", () => {
      poll(false);
      ask(); // whatever happened while it was closed
    });
    source.addEventListener("state", (event) => take(JSON.parse(event.data)));
    source.addEventListener("error", () => {
      poll(true);
      if (source.readyState === EventSource.CLOSED) setTimeout(open, REOPEN); // otherwise it reconnects by itself
    });
  };

  ask();
  if (window.EventSource) open();
  else poll(true);
}

/** A function that hands the latest value to each of `steps` when the browser has nothing better to do: a key press
 * goes first, and its frame is not late because a chart was drawn. */
export function inIdleTime(...steps) {
  const later = window.requestIdleCallback ?? ((act) => setTimeout(act, 30)); // Safari has none
  let value;
  let waiting = [];
  const run = () => {
    try {
      waiting.shift()(value);
    } finally {
      if (waiting.length) later(run, { timeout: 300 }); // also if a step fails
    }
  };
  return (latest) => {
    value = latest;
    const idle = waiting.length === 0;
    waiting = [...waiting, ...steps.filter((step) => !waiting.includes(step))]; // an old value need not be drawn
    if (idle) later(run, { timeout: 300 });
  };
}
