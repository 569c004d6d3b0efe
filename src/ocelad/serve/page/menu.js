// The menus: exports, the invitation of others, and the question before "I judge differently now".

import { element } from "./pair.js";

const byId = (id) => document.getElementById(id);

const FILES = [
  ["answers.csv", "Answers", "CSV, as ocelad track takes it"],
  ["items.csv", "Items", "CSV"],
  ["groups.csv", "Groups", "CSV"],
  ["tracker.ocelad", "Tracker", "a safe file"],
];

/** The links of all exports; made anew for each place they appear in. */
export function exportLinks(api, map, title) {
  const entry = (name, what) => [element("strong", "", name), element("span", "", what)];
  const links = FILES.map(([file, name, what]) => {
    const link = element("a", "", ...entry(name, what));
    link.href = api.url(`export/${file}`);
    link.download = file;
    return element("li", "", link);
  });
  const figure = element("button", "", ...entry("Figure", "PNG of the map"));
  figure.type = "button";
  figure.addEventListener("click", () => save(map, title));
  return [...links, element("li", "", figure)];
}

async function save(map, title) {
  const blob = await map.picture(title);
  if (!blob) return;
  const link = element("a");
  link.href = URL.createObjectURL(blob);
  link.download = "map.png";
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 10_000);
}

/** Opens and closes as a menu does: Escape, a choice, or a click elsewhere closes it. */
export function exportMenu(api, map, title) {
  const menu = byId("export");
  const again = element("li", "again", "Learn the answers again: ", element("code", "", "ocelad track answers.csv"));
  byId("export-list").replaceChildren(...exportLinks(api, map, title), again);
  document.addEventListener("click", (event) => {
    if (event.target.closest("#export-list a, #export-list button") || !menu.contains(event.target)) menu.open = false;
  });
  menu.addEventListener("keydown", (event) => {
    if (event.key !== "Escape") return;
    menu.open = false;
    menu.querySelector("summary").focus();
  });
}

/** The command that learns the exported answers again. */
export function trackCommand(words) {
  const code = document.querySelector("#export-list .again code");
  if (code.textContent !== words) code.textContent = words;
}

export function inviteButton(api) {
  const [dialog, link, words] = ["invite-dialog", "invite-link", "invite-words"].map(byId);
  byId("invite").hidden = false;
  byId("invite").addEventListener("click", async () => {
    try {
      link.value = (await api.link()).link;
      words.textContent = "This link lets one person in, once. Send it to whom you trust.";
    } catch (problem) {
      link.value = "";
      words.textContent = `There is no link: ${problem.message}`;
    }
    dialog.showModal();
    link.select();
  });
  byId("invite-copy").addEventListener("click", async () => {
    link.select();
    try {
      await navigator.clipboard.writeText(link.value);
    } catch {
      document.execCommand("copy"); // the clipboard's own interface exists on https only
    }
    words.textContent = "Copied.";
  });
  byId("invite-close").addEventListener("click", () => dialog.close());
}

/** Asks before it acts: all earlier answers lose what they imply. */
export function changeButton(act) {
  const dialog = byId("change-dialog");
  byId("change").addEventListener("click", () => dialog.showModal());
  byId("change-no").addEventListener("click", () => dialog.close());
  byId("change-yes").addEventListener("click", (event) => {
    dialog.close();
    byId("ask").focus(); // a space or Enter would open it again
    act(event);
  });
}
