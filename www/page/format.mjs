// Numbers as people read them.

const whole = new Intl.NumberFormat("en");

export function count(number) {
  return whole.format(number);
}

/** Milliseconds with three digits or so: "4.2 ms", "151 ms", "2.31 s", with a space that does not break. */
export function duration(ms) {
  if (ms < 9.95) return `${ms.toFixed(1)}\u00a0ms`;
  if (ms < 999.5) return `${Math.round(ms)}\u00a0ms`;
  return ms < 9995 ? `${(ms / 1000).toFixed(2)}\u00a0s` : `${(ms / 1000).toFixed(1)}\u00a0s`;
}

export function percent(ratio) {
  return `${Math.round(ratio * 100)}%`;
}

/** How many times: "6.3", "17". */
export function times(ratio) {
  return ratio < 9.95 ? ratio.toFixed(1) : whole.format(Math.round(ratio));
}

export function plural(number, one, many = `${one}s`) {
  return `${count(number)} ${number === 1 ? one : many}`;
}
