// The colours that canvases need, read from the style sheet so that they follow light and dark.

const NAMES = ["surface", "ink", "muted", "line", "accent", "low", "high"];
const dark = window.matchMedia("(prefers-color-scheme: dark)");
const still = window.matchMedia("(prefers-reduced-motion: reduce)");

let known = null;

/** {surface, ink, muted, line, accent, low, high, palette: [six]}; each group has a shape besides its colour. */
export function colours() {
  if (known) return known;
  const style = getComputedStyle(document.documentElement);
  const read = (name) => style.getPropertyValue(`--${name}`).trim();
  known = Object.fromEntries(NAMES.map((name) => [name, read(name)]));
  known.palette = [1, 2, 3, 4, 5, 6].map((i) => read(`group-${i}`));
  return known;
}

export function onTheme(act) {
  dark.addEventListener("change", () => {
    known = null;
    act();
  });
}

export const motionless = () => still.matches;

export const FONT = '-apple-system, "Segoe UI", Roboto, "Noto Sans", "Liberation Sans", system-ui, sans-serif';

/** A share as a percentage, or a dash if it is not known. */
export function percent(share) {
  return share === null || share === undefined ? "–" : `${Math.round(100 * share)} %`;
}

/** "1 answer", "3 answers". */
export function many(count, one, more = `${one}s`) {
  return `${count} ${count === 1 ? one : more}`;
}
