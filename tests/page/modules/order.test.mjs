import assert from "node:assert/strict";
import { test } from "node:test";
import { letterOf, moved, placeAfterKey, shuffled } from "../../../www/page/order.mjs";

const list = ["a", "b", "c", "d"];

/** Numbers in [0, 1) that a seed repeats (mulberry32). */
function randomNumbers(seed) {
  let state = seed;
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
}

function randomSeed() {
  const seed = Math.floor(Math.random() * 2 ** 31);
  console.log(`seed ${seed}`);
  return seed;
}

test("an element moves and the others keep their order", () => {
  assert.deepEqual(moved(list, 0, 2), ["b", "c", "a", "d"]);
  assert.deepEqual(moved(list, 3, 0), ["d", "a", "b", "c"]);
  assert.deepEqual(moved(list, 1, 1), list);
  assert.deepEqual(moved(list, 1, 99), ["a", "c", "d", "b"]);
  assert.deepEqual(moved(list, 1, -5), ["b", "a", "c", "d"]);
  assert.deepEqual(list, ["a", "b", "c", "d"], "the list itself is left alone");
});

test("a shuffled list has the same elements in another order", () => {
  const random = randomNumbers(randomSeed());
  for (let round = 0; round < 200; ++round) {
    const result = shuffled(list, random);
    assert.deepEqual(result.toSorted(), list);
    assert.notDeepEqual(result, list);
  }
  assert.deepEqual(shuffled(["a"]), ["a"]);
  assert.deepEqual(shuffled([]), []);
});

test("shuffling reaches every other order about as often", () => {
  const random = randomNumbers(randomSeed());
  const rounds = 6000;
  const counts = new Map();
  for (let round = 0; round < rounds; ++round) {
    const order = shuffled(["a", "b", "c"], random).join("");
    counts.set(order, (counts.get(order) ?? 0) + 1);
  }
  // The order of the list itself is put off to "bac", which so gets two sixths.
  assert.equal(counts.size, 5);
  for (const [order, count] of counts) {
    const expected = (order === "bac" ? 2 : 1) * (rounds / 6);
    assert.ok(Math.abs(count - expected) < 6 * Math.sqrt(expected), `${order}: ${count}, expected about ${expected}`);
  }
});

test("keys move a step or to an end, never past it", () => {
  assert.equal(placeAfterKey("ArrowUp", 2, 4), 1);
  assert.equal(placeAfterKey("ArrowUp", 0, 4), 0);
  assert.equal(placeAfterKey("ArrowDown", 2, 4), 3);
  assert.equal(placeAfterKey("ArrowDown", 3, 4), 3);
  assert.equal(placeAfterKey("Home", 2, 4), 0);
  assert.equal(placeAfterKey("End", 0, 4), 3);
  for (const key of ["Enter", "a", "toString", "Tab"]) assert.equal(placeAfterKey(key, 0, 4), null);
});

test("letters go on after Z", () => {
  assert.deepEqual([0, 25, 26, 27, 51, 52, 701, 702].map(letterOf), ["A", "Z", "AA", "AB", "AZ", "BA", "ZZ", "AAA"]);
});
