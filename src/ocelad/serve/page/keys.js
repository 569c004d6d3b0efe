// The keys and buttons of the answers: letters, arrows, mouse and touch do the same.

const KEYS = {
  s: "similar",
  ArrowLeft: "similar",
  d: "different",
  ArrowRight: "different",
  u: "unsure",
  ArrowDown: "unsure",
  z: "undo",
  ArrowUp: "undo",
};
const TYPING = "input, select, textarea, [contenteditable]";
const FLASH = 140; // ms that the button of a key looks pressed

export function onKeys(actions) {
  const act = (name, event) => {
    const button = document.getElementById(name);
    if (button.disabled) return;
    button.classList.add("pressed");
    setTimeout(() => button.classList.remove("pressed"), FLASH);
    actions[name](event);
  };

  for (const name of Object.keys(actions)) {
    document.getElementById(name).addEventListener("click", (event) => act(name, event));
  }

  document.addEventListener("keydown", (event) => {
    if (!event.key) return; // a browser that fills in a form sends such
    const name = KEYS[event.key.length === 1 ? event.key.toLowerCase() : event.key];
    const modified = event.ctrlKey || event.altKey || event.metaKey || event.shiftKey;
    if (event.repeat && (name || (event.key === "Enter" && event.target.closest("#buttons")))) {
      event.preventDefault(); // a key held down is one answer
      return;
    }
    if (!name || modified || event.target.closest(TYPING) || document.querySelector("dialog[open]")) return;
    // a long text that has the focus scrolls by its arrows
    const vertical = event.key === "ArrowUp" || event.key === "ArrowDown";
    if (vertical && event.target.closest(".scroll[tabindex]")) return;
    event.preventDefault();
    act(name, event);
  });
}
