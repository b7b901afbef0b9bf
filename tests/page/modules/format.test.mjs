import assert from "node:assert/strict";
import { test } from "node:test";
import { count, duration, percent, plural, times } from "../../../www/page/format.mjs";

test("durations keep about three digits and say their unit", () => {
  const shown = [0.04, 4.24, 9.96, 24.4, 998, 999.6, 2312, 9996, 61_040].map((ms) => duration(ms).replace("\u00a0", " "));
  assert.deepEqual(shown, ["0.0 ms", "4.2 ms", "10 ms", "24 ms", "998 ms", "1.00 s", "2.31 s", "10.0 s", "61.0 s"]);
});

test("numbers read as people write them", () => {
  assert.deepEqual([count(1234567), percent(0.955), times(6.26), times(1234.4)], ["1,234,567", "96%", "6.3", "1,234"]);
  const numbers = [plural(1, "document"), plural(0, "document"), plural(2, "entry", "entries")];
  assert.deepEqual(numbers, ["1 document", "0 documents", "2 entries"]);
});
