import assert from "node:assert/strict";
import { test } from "node:test";
import { Documents, nameOf } from "../../../www/page/documents.mjs";

const samples = ["one", "two", "three"].map((title) => ({ title, text: `Text of ${title}.` }));
const letters = (documents) => documents.all.map(({ letter }) => letter).join("");

test("a document keeps its letter and colour wherever it stands", () => {
  const documents = new Documents(samples);
  const third = documents.find("C");
  documents.move("C", 0);
  assert.equal(letters(documents), "CAB");
  assert.equal(documents.all[0], third);
  assert.equal(new Set(documents.all.map(({ hue }) => hue)).size, 3);
});

test("what a race was run with does not change when the page's documents do", () => {
  const documents = new Documents(samples);
  const asked = documents.all;
  const copy = structuredClone(asked);
  documents.edit("A", { title: "", text: "Other." });
  documents.move("B", 2);
  documents.remove("C");
  documents.add({ title: "four", text: "More." });
  assert.deepEqual(asked, copy);
  assert.equal(letters(documents), "ABD");
  assert.deepEqual([documents.find("A").title, documents.find("A").text], ["", "Other."]);
});

test("a removed document's letter is not given again, until the samples are back", () => {
  const documents = new Documents(samples);
  documents.remove("C");
  assert.equal(documents.add({ title: "", text: "x" }).letter, "D");
  documents.reset(samples);
  assert.equal(letters(documents), "ABC");
  assert.equal(documents.add({ title: "", text: "x" }).letter, "D");
});

test("every change is told", () => {
  const documents = new Documents(samples);
  let told = 0;
  documents.onChange(() => ++told);
  documents.move("A", 2);
  documents.shuffle();
  documents.edit("A", { title: "", text: "x" });
  documents.remove("A");
  documents.add({ title: "", text: "x" });
  documents.reset(samples);
  assert.equal(told, 6);
});

test("a document without a title goes by the beginning of its text", () => {
  assert.equal(nameOf(samples[0]), "one");
  assert.equal(nameOf({ title: "", text: "Short." }), "Short.");
  assert.equal(nameOf({ title: "", text: "x".repeat(31) }), `${"x".repeat(30)}…`);
});
