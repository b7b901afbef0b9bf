// The one place where the page says what went wrong.
import { byId } from "./dom.mjs";

export function showProblem(text) {
  byId("problem-text").textContent = text;
  byId("problem").hidden = false;
}

export function hideProblem() {
  byId("problem").hidden = true;
  byId("problem-text").textContent = "";
}

/** Makes it show what no other part of the page catches, too. */
export function watchForProblems() {
  byId("problem-close").addEventListener("click", hideProblem);
  addEventListener("error", (event) => showProblem(`The page failed: ${event.message}`));
  addEventListener("unhandledrejection", (event) => showProblem(`The page failed: ${event.reason?.message ?? event.reason}`));
}
