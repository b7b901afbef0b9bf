// The list of past races.
import { byId, fromTemplate } from "./dom.mjs";
import { duration, percent, times } from "./format.mjs";
import { reuseOf, sameAnswer, speedUp } from "./verdict.mjs";
import { visibleLine } from "./visible_text.mjs";

const most = 50; // older ones go

function said(runs) {
  const answers = runs.map((run) => visibleLine(run.answer.trim()));
  return sameAnswer(runs) ? answers[0] : runs.map(({ method }, i) => `${method}: ${answers[i]}`).join(" / ");
}

function laneText(run) {
  const { tokens, cached } = reuseOf(run);
  const first = run.firstTokenMs === null ? "no token" : duration(run.firstTokenMs);
  return `${run.method} ${first}${tokens > 0 ? `, ${percent(cached / tokens)} cached` : ""}`;
}

function howText(race) {
  const parts = race.runs.map(laneText);
  const speed = speedUp(race.runs);
  if (speed) parts.push(`${times(speed.ratio)} times`);
  if (race.start === "cold") parts.push("from empty caches");
  return parts.join(" · ");
}

/** `show(race)` is called when the user wants to see one again. */
export function rememberRace(race, show) {
  const row = fromTemplate("past-template");
  row.querySelector(".asked").textContent = visibleLine(race.question);
  row.querySelector(".said").textContent = said(race.runs);
  row.querySelector(".how").textContent = howText(race);
  const button = row.querySelector(".show");
  button.setAttribute("aria-label", `Show again: ${visibleLine(race.question)}`);
  button.addEventListener("click", () => show(race));
  byId("no-history").hidden = true;
  byId("history").prepend(row);
  while (byId("history").children.length > most) byId("history").lastElementChild.remove();
}
