// One lane: its method, the prompt to scale, the time to the first token, the answer.
import { element, fromTemplate, setHue, setWidth } from "./dom.mjs";
import { nameOf } from "./documents.mjs";
import { count, duration } from "./format.mjs";
import { methods } from "./methods.mjs";
import { stateAt } from "./replay.mjs";
import { reuseOf } from "./verdict.mjs";
import { visibleLine, visibleText } from "./visible_text.mjs";

/** A part of the prompt, as wide as its tokens; what was cached is filled. */
function segment({ className, mark, label, tokens, cached, hue }) {
  const fill = element("i", "fill");
  setWidth(fill, tokens > 0 ? cached / tokens : 0);
  const whole = `${label}: ${count(cached)} of ${count(tokens)} tokens from the cache`;
  const item = element("li", className, fill, element("b", "", mark), element("span", "unseen", whole));
  item.firstElementChild.nextElementSibling.ariaHidden = "true";
  item.title = whole;
  item.style.flexGrow = tokens;
  item.classList.toggle("computed", cached === 0);
  if (hue !== undefined) setHue(item, hue);
  return item;
}

function segmentsOf(run) {
  const { tokens, cached } = reuseOf(run);
  const documents = run.documents.map((document) =>
    segment({ ...document, className: "document", mark: document.letter, label: visibleLine(nameOf(document)) }));
  const text = { tokens: run.promptTokens - tokens, cached: run.cachedTokens - cached };
  return [...documents, segment({ ...text, className: "text", mark: "Q", label: "Question and template" })];
}

/** What is told of a run's times at a moment: that of the first token, and what that means. */
function timesOf({ firstTokenMs, totalMs }, { begun, ended, waitedMs }) {
  const end = `${duration(totalMs)} to the end`;
  if (ended) return firstTokenMs === null ? ["no token", end] : [duration(firstTokenMs), `to the first token, ${end}`];
  return begun ? [duration(firstTokenMs), "to the first token"] : [`${duration(waitedMs)} …`, ""];
}

export class LaneView {
  #root = fromTemplate("lane-template");
  #number;

  constructor(number, method, methodChanged) {
    this.#number = number;
    const select = this.#part("select");
    select.id = `method-${number}`;
    select.append(...Object.keys(methods).map((name) => element("option", "", name)));
    select.setAttribute("aria-label", `Method of lane ${number + 1}`);
    select.value = method;
    select.addEventListener("change", methodChanged);
    this.#root.setAttribute("aria-label", `Lane ${number + 1}`);
    this.#root.classList.add(`lane-${number + 1}`);
    this.clear("has not run yet");
  }

  get root() {
    return this.#root;
  }

  get method() {
    return this.#part("select").value;
  }

  set method(name) {
    this.#part("select").value = name;
  }

  set note(text) {
    this.#part(".note").textContent = text;
  }

  set disabled(disabled) {
    this.#part("select").disabled = disabled;
  }

  #part(selector) {
    return this.#root.querySelector(selector);
  }

  #text(selector, text) {
    this.#part(selector).textContent = text;
  }

  /** Without a run, only with what is going on. */
  clear(state) {
    this.state = state;
    this.#part(".prompt").replaceChildren();
    for (const selector of [".reuse", ".first", ".total", ".answer"]) this.#text(selector, "");
    for (const selector of [".waited", ".answered"]) setWidth(this.#part(selector), 0);
  }

  set state(text) {
    this.#root.dataset.phase = "busy";
    this.#text(".state", text);
  }

  /** What has come of an answer that is being measured. */
  set arriving(text) {
    this.#text(".answer", visibleText(text));
  }

  showPrompt(run) {
    const { tokens, cached } = reuseOf(run);
    this.#root.dataset.phase = "shown";
    this.#text(".state", "");
    this.#part(".prompt").replaceChildren(...segmentsOf(run));
    this.#text(".reuse", tokens === 0
      ? `${count(run.cachedTokens)} of ${count(run.promptTokens)} tokens cached`
      : `${count(cached)} of ${count(tokens)} document tokens cached`);
  }

  /** The run as it was `ms` after its beginning, on an axis that ends at `end`. */
  showAt(run, ms, end) {
    const now = stateAt(run, ms);
    setWidth(this.#part(".waited"), now.waitedMs / end);
    setWidth(this.#part(".answered"), now.answeredMs / end);
    const [first, total] = timesOf(run, now);
    this.#text(".first", first);
    this.#text(".total", total);
    this.#text(".answer", visibleText(now.text));
  }
}
