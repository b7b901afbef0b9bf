// The lanes of a race, their common axis, the replay and the verdict.
import { byId, chip, element, prefersStill } from "./dom.mjs";
import { duration } from "./format.mjs";
import { LaneView } from "./lane_view.mjs";
import { methods } from "./methods.mjs";
import { axisTicks, replayScale, scaleText } from "./replay.mjs";
import { verdictOf } from "./verdict.mjs";

const lastTick = 0.85; // of the axis: there its label still has room

export class RaceView {
  #lanes;
  #shown = null; // the race
  #frame = 0;
  #blockTrained = true;

  constructor(defaults) {
    this.#lanes = defaults.map((method, number) => new LaneView(number, method, () => this.#showNotes()));
    byId("lanes").append(...this.#lanes.map((lane) => lane.root));
    byId("replay").addEventListener("click", () => this.#play());
    byId("skip").addEventListener("click", () => this.#showEnd());
    this.#showNotes();
  }

  get methods() {
    return this.#lanes.map((lane) => lane.method);
  }

  /** Whether the model was trained for documents that were encoded alone. */
  set blockTrained(trained) {
    this.#blockTrained = trained;
    this.#showNotes();
  }

  #showNotes() {
    for (const lane of this.#lanes) {
      const { alone, note } = methods[lane.method];
      lane.note = alone && !this.#blockTrained ? `${note}; this model was not trained for that, answers may suffer` : note;
    }
  }

  /** Scrolls as little as shows both lanes. */
  #bringIntoView() {
    byId("lanes").scrollIntoView({ block: "nearest", behavior: prefersStill() ? "auto" : "smooth" });
  }

  /** A race begins: what was shown goes. */
  begin() {
    this.#bringIntoView();
    this.#stop();
    this.#shown = null;
    byId("replay").hidden = true;
    byId("axis").replaceChildren();
    byId("verdict").replaceChildren();
    byId("read-before").hidden = true;
    for (const lane of this.#lanes) {
      lane.clear("waits for its turn");
      lane.disabled = true;
    }
  }

  showStage({ stage, lane }) {
    const text = { warming: "reads the documents in their old order, unmeasured", running: "runs alone" }[stage];
    this.#lanes.forEach((each, number) => {
      each.state = number === lane ? text : number < lane && stage === "running" ? "has run" : "waits for its turn";
    });
    byId("scale").textContent = `Lane ${lane + 1}, ${this.#lanes[lane].method}, ${text}.`;
  }

  showArriving(lane, text) {
    this.#lanes[lane].arriving = text;
  }

  /** The race has ended without a result. */
  fail(reason) {
    for (const lane of this.#lanes) {
      lane.clear("did not finish");
      lane.disabled = false;
    }
    byId("scale").textContent = reason;
  }

  /** Shows a race that was run, now or earlier, from its start. */
  show(race) {
    this.#stop();
    this.#shown = race;
    race.runs.forEach((run, number) => {
      const lane = this.#lanes[number];
      lane.disabled = false;
      lane.method = run.method;
      lane.showPrompt(run);
    });
    this.#showNotes();
    this.#showBefore();
    this.#showAxis();
    byId("verdict").replaceChildren(...verdictOf(race.runs).map((sentence) => element("p", "", sentence)));
    if (prefersStill()) this.#showEnd();
    else this.#play();
    this.#bringIntoView();
  }

  #showBefore() {
    const { start, before } = this.#shown;
    const read = element("span", "chips", ...before.map(chip));
    byId("read-before").replaceChildren(...(start === "cold" ? ["Both began with empty caches."] : ["Both had read ", read]));
    byId("read-before").hidden = false;
  }

  get #end() {
    return Math.max(...this.#shown.runs.map(({ totalMs }) => totalMs));
  }

  #showAxis() {
    byId("axis").replaceChildren(...axisTicks(this.#end * lastTick).map((ms) => {
      const tick = element("li", "", duration(ms).replace(/\.0+(?=\s)/, ""));
      tick.style.insetInlineStart = `${(ms / this.#end) * 100}%`;
      return tick;
    }));
  }

  #showAt(ms) {
    this.#shown.runs.forEach((run, number) => this.#lanes[number].showAt(run, ms, this.#end));
  }

  #stop() {
    cancelAnimationFrame(this.#frame);
    byId("skip").hidden = true;
  }

  #showEnd() {
    this.#stop();
    this.#showAt(this.#end);
    byId("replay").hidden = false;
    byId("scale").textContent = "Both lanes on one scale, each measured while it ran alone.";
  }

  #play() {
    this.#stop();
    const scale = replayScale(this.#end);
    const began = performance.now();
    byId("replay").hidden = true;
    byId("skip").hidden = false;
    byId("scale").textContent = `Replay of both lanes, ${scaleText(scale)}.`;
    const step = (now) => {
      const ms = Math.max(0, now - began) / scale;
      if (ms >= this.#end) return this.#showEnd();
      this.#showAt(ms);
      this.#frame = requestAnimationFrame(step);
    };
    this.#showAt(0);
    this.#frame = requestAnimationFrame(step);
  }
}
