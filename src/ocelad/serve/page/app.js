// Wires the page: keys and buttons to answers, questions to the stage, the state of the stream to the panels.

import { Answers } from "./answers.js";
import { Api } from "./api.js";
import { Charts } from "./charts.js";
import { onKeys } from "./keys.js";
import { follow, inIdleTime } from "./live.js";
import { ItemMap } from "./map.js";
import { changeButton, exportMenu, inviteButton, trackCommand } from "./menu.js";
import { Notes } from "./notes.js";
import { showPair, spoken, watchSize } from "./pair.js";
import { showPanels } from "./panels.js";
import { Questions } from "./questions.js";
import { allKnown, noItems, waiting } from "./stage.js";
import { showStatus } from "./status.js";
import { local, randomId } from "./store.js";
import { onTheme } from "./theme.js";
import { afterPaint, times } from "./times.js";

const byId = (id) => document.getElementById(id);
const stage = byId("stage");
const api = new Api(new URLSearchParams(location.search).get("stream") || "default");

/** Who answers: a name, or else this browser, since questions are kept free for somebody. */
function me() {
  const name = byId("name").value.trim();
  if (name) return name;
  const known = local.get("ocelad.browser") ?? `browser-${randomId().slice(0, 4)}`;
  local.set("ocelad.browser", known);
  return known;
}

const say = (text) => (byId("say").textContent = text);
const sayMore = (text) => (byId("say-more").textContent = text);

const notes = new Notes(byId("notes"), sayMore);
const map = new ItemMap(api);
const charts = new Charts();
let title = "ocelad";

const answers = new Answers(api, {
  changed: () => {
    showStatus(answers, sayMore);
    byId("undo").disabled = answers.stack.length === 0;
  },
  acknowledged: (entry, ms) => {
    if (entry.question && ms !== null) times.acknowledged(ms);
    questions.refill();
  },
  refused: (entry, problem) => notes.add(entry.kind === "undo" ? "Not undone" : "Not saved", problem.message),
});

const questions = new Questions(api, answers, () => ({ by: me(), aim: byId("aim").value }), { arrived: () => show() });

/** Shows the current question, or why there is none; `said` is what happened before it. */
function show(said = "") {
  const question = questions.current;
  const number = `Question ${answers.count + 1}`;
  if (question) showPair(stage, question);
  else if (questions.done) allKnown(stage, api, map, title);
  else waiting(stage, questions.problem);
  byId("ask").textContent = question || !questions.done ? "Are these two similar?" : "Nothing left to ask";
  byId("number").textContent = question ? number : "";
  for (const id of ["similar", "different", "unsure"]) byId(id).disabled = !question;
  afterPaint(() => {
    map.compare(question);
    if (question) say(`${said} ${number}. ${spoken(question)}`.trim());
    else if (questions.done) say(`${said} ${stage.textContent}`.trim());
  });
}

/** The next question first, so that it is painted with this very frame; then the answer is kept and sent. */
function answer(event, kind, y, said) {
  const question = questions.current;
  if (!question) return;
  questions.advance();
  answers.add(kind, question, y, me(), event.timeStamp);
  show(said);
  times.painted(event.timeStamp);
  questions.refill();
}

function undo(event) {
  const last = answers.undo();
  if (!last) return;
  if (last.question) questions.back(last.question);
  show("Undone.");
  times.painted(event.timeStamp);
}

function change(event) {
  answers.add("change", null, null, me(), event.timeStamp);
  questions.renew();
}

onKeys({
  similar: (event) => answer(event, "comparison", 1, "Similar."),
  different: (event) => answer(event, "comparison", -1, "Different."),
  unsure: (event) => answer(event, "skip", null, "Skipped."),
  undo,
});
changeButton(change);
watchSize(stage);

function remember() {
  byId("name").value = local.get("ocelad.name") ?? "";
  byId("name").addEventListener("change", () => {
    local.set("ocelad.name", byId("name").value.trim());
    questions.renew();
  });
  byId("name").addEventListener("keydown", (event) => event.key === "Enter" && byId("ask").focus());
  byId("aim").addEventListener("change", () => {
    local.set(`ocelad.aim.${api.stream}`, byId("aim").value);
    questions.renew();
  });
}

/** What the service is about; asked until it answers. */
async function about() {
  for (let wait = 300; ; wait = Math.min(5000, 2 * wait)) {
    try {
      return await api.info();
    } catch (problem) {
      waiting(stage, problem);
      await new Promise((resolve) => setTimeout(resolve, wait));
    }
  }
}

async function start() {
  remember();
  answers.on.changed();
  answers.start();
  const info = await about();
  title = info.title || "ocelad";
  byId("title").textContent = info.title ?? "";
  document.title = `${title} · ocelad`;
  byId("aim").value = local.get(`ocelad.aim.${api.stream}`) ?? info.aim ?? "metric";
  map.columns(info.columns ?? []);
  exportMenu(api, map, title);
  if (info.auth) inviteButton(api);
  onTheme(() => map.redraw());
  const draw = inIdleTime(
    (state) => showPanels(state, me()),
    (state) => trackCommand(state.track),
    (state) => notes.update(state, me()),
    (state) => charts.calibrate(state),
    (state) => charts.learn(state),
    (state) => map.update(state.version),
  );
  follow(api, draw);
  if (info.items) questions.refill();
  else noItems(stage, api, info);
}

start();
