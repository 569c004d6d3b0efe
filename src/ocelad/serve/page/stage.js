// What the stage shows when there is no question: it is on its way, all is known, or there are no items.

import { exportLinks } from "./menu.js";
import { element } from "./pair.js";

export function waiting(stage, problem) {
  const words = !problem
    ? "The next pair is on its way."
    : problem.status === 401 || problem.status === 403
      ? "You are not signed in. Open the one-time link that you were given, or ask for a new one."
      : problem.status === 0
        ? "No connection to the service. The page keeps trying."
        : `The service gives no question: ${problem.message}`;
  stage.className = "stage";
  stage.replaceChildren(element("p", "waiting", words));
}

export function allKnown(stage, api, map, title) {
  const list = element("ul", "links", ...exportLinks(api, map, title));
  stage.className = "stage";
  stage.replaceChildren(
    element(
      "div",
      "message scroll",
      element("h3", "", "All is known."),
      element("p", "", "Every pair is answered, or follows from what you said. Thank you! You can take it with you:"),
      list,
    ),
  );
}

export function noItems(stage, api, info) {
  const size = Math.max(2, Math.min(info.features?.length || 2, 4));
  const point = (from) => `[${Array.from({ length: size }, (_, i) => ((from * (i + 2)) % 1).toFixed(1)).join(", ")}]`;
  const example = [
    `curl -X POST ${location.origin}${api.url("comparisons")} \\`,
    "  -H 'Content-Type: application/json' \\",
    `  -d '{"request_id": "1", "y": 1,`,
    `       "x": ${point(0.35)}, "z": ${point(0.42)}}'`,
  ].join("\n");
  const code = element("pre", "scroll", element("code", "", example));
  code.tabIndex = 0;
  code.setAttribute("aria-label", "Example of a request");
  code.setAttribute("role", "group");
  document.getElementById("ask").textContent = "This service has no items";
  document.getElementById("buttons").classList.add("idle");
  for (const button of document.querySelectorAll("#buttons button")) button.disabled = true;
  stage.className = "stage";
  stage.replaceChildren(
    element(
      "div",
      "message scroll",
      element("p", "", "So there is nothing to ask here. Programs can send comparisons, and what is learned from them appears on this page:"),
      code,
      element("p", "", "y is 1 if the points x and z are similar, -1 if they are different. To compare items here, start ocelad serve with a file of items."),
    ),
  );
}
