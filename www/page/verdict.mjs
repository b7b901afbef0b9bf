// What a race showed, in words: read off the measured times and the usage that the server told, nothing else.
import { duration, times } from "./format.mjs";
import { methods } from "./methods.mjs";

const alike = 1.15; // ratios below are noise

/** Of a run's documents: tokens in all and from the cache. */
export function reuseOf(run) {
  const sum = (field) => run.documents.reduce((total, document) => total + document[field], 0);
  return { tokens: sum("tokens"), cached: sum("cached") };
}

/** How many times sooner the quicker run's first token came, and both runs in that order; null without two first tokens. */
export function speedUp(runs) {
  if (runs.some(({ firstTokenMs }) => firstTokenMs === null)) return null;
  const [quick, slow] = runs.toSorted((a, b) => a.firstTokenMs - b.firstTokenMs);
  return { quick, slow, ratio: slow.firstTokenMs / quick.firstTokenMs };
}

function speedSentence(runs) {
  const speed = speedUp(runs);
  if (!speed) return "An answer without a token cannot be raced.";
  const { quick, slow, ratio } = speed;
  const [soon, late] = [duration(quick.firstTokenMs), duration(slow.firstTokenMs)];
  if (runs[0].method === runs[1].method) return `The same method twice, ${soon} and ${late}: the difference is noise.`;
  if (ratio < alike) return `About as soon as each other: ${quick.method} after ${soon}, ${slow.method} after ${late}.`;
  return `${quick.method} began to answer ${times(ratio)} times sooner: after ${soon}, ${slow.method} after ${late}.`;
}

function letters(documents) {
  return documents.map(({ letter }) => letter).join(" ");
}

function aloneSentence({ method, documents }) {
  const computed = documents.filter(({ cached }) => cached === 0);
  if (computed.length === 0) return `${method} found every document in the cache: its copy fits any slot.`;
  if (computed.length === documents.length) return `${method} had to compute every document.`;
  return `${method} computed only what was new to it: ${letters(computed)}.`;
}

function prefixSentence({ method, documents }) {
  const reused = documents.filter(({ cached }) => cached > 0);
  if (documents.every(({ tokens, cached }) => cached >= tokens)) {
    return `${method} found every document in the cache: the prompt begins like an earlier one.`;
  }
  if (reused.length === 0) return `${method} had to compute every document: the prompt begins otherwise than earlier ones.`;
  return `${method} reused ${letters(reused)}, as far as the prompt begins like an earlier one, and computed the rest.`;
}

function reuseSentence(run) {
  if (run.method === "full") return "full computes every document every time.";
  return methods[run.method].alone ? aloneSentence(run) : prefixSentence(run);
}

function reuseSentences(runs) {
  if (runs[0].documents.length === 0) return [];
  if (runs.every((run) => reuseOf(run).cached === 0)) return ["Neither had anything cached, so both computed every document."];
  return [...new Set(runs.map(reuseSentence))];
}

export function sameAnswer(runs) {
  return runs[0].answer.trim() === runs[1].answer.trim();
}

/** The sentences about the runs of a race. */
export function verdictOf(runs) {
  return [
    speedSentence(runs),
    ...reuseSentences(runs),
    sameAnswer(runs) ? "Both gave the same answer." : "The answers differ.",
  ];
}
