// Replaying the runs of a race side by side: all by one scale, so that what took twice as long takes twice as long.

const factors = [1, 2, 5, 10, 20, 50, 100, 200, 500, 1000];
const shortest = 2500; // ms on the screen of the longest run: less cannot be watched
const longest = 12000;

/**
 * Milliseconds on the screen for one that was measured, when the longest run took `ms`. Real time where that can be
 * watched; else a round number of times slower or faster.
 */
export function replayScale(ms) {
  if (ms > longest) return 1 / (factors.find((factor) => ms / factor <= longest) ?? factors.at(-1));
  return factors.find((factor) => ms * factor >= shortest) ?? factors.at(-1);
}

export function scaleText(scale) {
  if (scale === 1) return "at real speed";
  return scale > 1 ? `${scale} times slower than measured` : `${Math.round(1 / scale)} times faster than measured`;
}

/** What a run {firstTokenMs, totalMs, pieces} showed `ms` after it began. */
export function stateAt(run, ms) {
  const { firstTokenMs, totalMs, pieces } = run;
  return {
    waitedMs: Math.min(ms, firstTokenMs ?? totalMs),
    answeredMs: Math.max(0, Math.min(ms, totalMs) - (firstTokenMs ?? totalMs)),
    begun: firstTokenMs !== null && ms >= firstTokenMs,
    ended: ms >= totalMs,
    text: pieces.filter((piece) => piece.at <= ms).map((piece) => piece.text).join(""),
  };
}

/** Round places for marks on a time axis that ends at `ms`, about five of them. */
export function axisTicks(ms) {
  const rough = ms / 4;
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = [1, 2, 5, 10].map((digit) => digit * power).find((size) => size >= rough);
  return Array.from({ length: Math.floor(ms / step + 1e-9) + 1 }, (_, i) => i * step);
}
