// The strip that tells the state of the server's cache, every other second while the page is seen.
import { metricsText } from "./api.mjs";
import { byId, setWidth } from "./dom.mjs";
import { count, percent, plural } from "./format.mjs";
import { parseMetrics, poolState } from "./metrics.mjs";

const interval = 2000; // ms
const intervalOfSilence = 10_000; // ms, after the server did not answer

function show(state) {
  const used = state.cached + state.inUse;
  byId("pool-text").value =
    `${percent(used / state.total)}: ${plural(state.documents, "document")}, ${count(used)} of ${count(state.total)} blocks`;
  setWidth(byId("pool-used"), state.inUse / state.total);
  setWidth(byId("pool-cached"), state.cached / state.total);
  byId("hit-text").value =
    state.hitRatio === null ? "no documents yet" : `${percent(state.hitRatio)} of ${plural(state.asked, "document token")}`;
  setWidth(byId("hit-ratio"), state.hitRatio ?? 0);
  byId("load-text").value = `${count(state.running)} running, ${count(state.waiting)} waiting`;
}

function showSilence(reason) {
  byId("pool-text").value = reason;
  byId("hit-text").value = "unknown";
  byId("load-text").value = "unknown";
}

/** Reads the metrics once; true when they came. */
async function refresh() {
  try {
    show(poolState(parseMetrics(await metricsText())));
    byId("pool").classList.remove("silent");
    return true;
  } catch (error) {
    showSilence(error.message);
    byId("pool").classList.add("silent");
    return false;
  }
}

/** Begins; returns a function that refreshes at once. */
export function startPoolStrip() {
  let timer = 0;
  const tick = async () => {
    clearTimeout(timer);
    const answered = document.hidden || (await refresh());
    clearTimeout(timer);
    timer = setTimeout(tick, answered ? interval : intervalOfSilence);
  };
  document.addEventListener("visibilitychange", () => {
    if (!document.hidden) tick();
  });
  tick();
  return tick;
}
