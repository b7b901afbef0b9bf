import assert from "node:assert/strict";
import { test } from "node:test";
import { reuseOf, speedUp, verdictOf } from "../../../www/page/verdict.mjs";

function runOf(method, firstTokenMs, cached, answer = "Masa") {
  const documents = cached.map((tokens, i) => ({ letter: "ABCD"[i], tokens: 40, cached: tokens }));
  return { method, firstTokenMs, totalMs: firstTokenMs + 10, answer, documents };
}

const plain = (runs) => verdictOf(runs).map((sentence) => sentence.replaceAll("\u00a0", " "));

test("the quicker one is named, with both times", () => {
  const runs = [runOf("lazy", 24, [40, 40, 40]), runOf("prefix", 151, [0, 0, 0])];
  assert.equal(speedUp(runs).ratio, 151 / 24);
  assert.deepEqual(plain(runs), [
    "lazy began to answer 6.3 times sooner: after 24 ms, prefix after 151 ms.",
    "lazy found every document in the cache: its copy fits any slot.",
    "prefix had to compute every document: the prompt begins otherwise than earlier ones.",
    "Both gave the same answer.",
  ]);
  assert.match(plain(runs.toReversed())[0], /^lazy began to answer 6\.3 times sooner/, "whichever lane it has");
  assert.match(plain([runOf("lazy", 300, [0, 0]), runOf("prefix", 100, [40, 40])])[0], /^prefix began to answer 3\.0 times sooner/);
});

test("noise is no victory", () => {
  assert.match(plain([runOf("lazy", 24, [40]), runOf("prefix", 26, [40])])[0], /^About as soon as each other/);
  assert.match(plain([runOf("lazy", 24, [40]), runOf("lazy", 60, [40])])[0], /^The same method twice/);
});

test("what was reused is told by letter", () => {
  const [, lazy, prefix] = plain([runOf("lazy", 30, [40, 0, 40]), runOf("prefix", 90, [40, 12, 0])]);
  assert.equal(lazy, "lazy computed only what was new to it: B.");
  assert.equal(prefix, "prefix reused A B, as far as the prompt begins like an earlier one, and computed the rest.");
  assert.deepEqual(reuseOf(runOf("prefix", 90, [40, 12, 0])), { tokens: 120, cached: 52 });
});

test("caches that held nothing are told once", () => {
  const sentences = plain([runOf("lazy", 100, [0, 0]), runOf("prefix", 100, [0, 0])]);
  assert.deepEqual(sentences.slice(1), [
    "Neither had anything cached, so both computed every document.", "Both gave the same answer."]);
});

test("full is said to compute everything", () => {
  assert.match(plain([runOf("lazy", 20, [40]), runOf("full", 100, [0])])[2], /^full computes every document/);
});

test("answers that differ are told", () => {
  assert.equal(plain([runOf("lazy", 20, []), runOf("prefix", 20, [], "Ilka")]).at(-1), "The answers differ.");
  assert.equal(plain([runOf("lazy", 20, []), runOf("prefix", 20, [], " Masa\n")]).at(-1), "Both gave the same answer.");
});

test("an answer without a token is not raced", () => {
  assert.match(plain([runOf("lazy", null, []), runOf("prefix", 20, [])])[0], /cannot be raced/);
});
