import assert from "node:assert/strict";
import { test } from "node:test";
import { axisTicks, replayScale, scaleText, stateAt } from "../../../www/page/replay.mjs";

const run = { firstTokenMs: 24, totalMs: 40, pieces: [{ at: 24, text: "Len" }, { at: 31, text: "ki" }, { at: 38, text: " Prize" }] };

test("a race lasts long enough to be watched and not too long", () => {
  for (const ms of [3, 20, 151, 900, 2400, 2600, 9000, 13_000, 60_000, 600_000, 3_600_000]) {
    const shown = ms * replayScale(ms);
    assert.ok(shown >= 2500 && shown <= 13_000, `${ms} ms are shown in ${shown} ms`);
  }
});

test("the scale is told", () => {
  assert.equal(scaleText(replayScale(5000)), "at real speed");
  assert.equal(scaleText(replayScale(151)), "20 times slower than measured");
  assert.equal(scaleText(replayScale(50_000)), "5 times faster than measured");
});

test("each moment shows what had come by then", () => {
  assert.deepEqual(stateAt(run, 0), { waitedMs: 0, answeredMs: 0, begun: false, ended: false, text: "" });
  assert.deepEqual(stateAt(run, 12), { waitedMs: 12, answeredMs: 0, begun: false, ended: false, text: "" });
  assert.deepEqual(stateAt(run, 32), { waitedMs: 24, answeredMs: 8, begun: true, ended: false, text: "Lenki" });
  assert.deepEqual(stateAt(run, 1000), { waitedMs: 24, answeredMs: 16, begun: true, ended: true, text: "Lenki Prize" });
});

test("an answer without a token never begins", () => {
  const empty = { firstTokenMs: null, totalMs: 10, pieces: [] };
  assert.deepEqual(stateAt(empty, 10), { waitedMs: 10, answeredMs: 0, begun: false, ended: true, text: "" });
});

test("the axis has a few round marks", () => {
  assert.deepEqual(axisTicks(198), [0, 50, 100, 150]);
  assert.deepEqual(axisTicks(200), [0, 50, 100, 150, 200]);
  assert.deepEqual(axisTicks(7), [0, 2, 4, 6]);
  for (let ms = 1; ms < 1e6; ms *= 1.7) {
    const ticks = axisTicks(ms);
    assert.ok(ticks.length >= 2 && ticks.length <= 6, `${ticks.length} at ${ms} ms`);
    assert.ok(ticks.at(-1) <= ms * (1 + 1e-9));
  }
});
