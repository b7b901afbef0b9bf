// Random numbers that a seed gives again.
export class Random {
  #state;
  constructor(seed) {
    this.#state = seed >>> 0;
  }
  /** A whole number in [0, limit) (the generator mulberry32). */
  below(limit) {
    this.#state = (this.#state + 0x6d2b79f5) >>> 0;
    let x = this.#state;
    x = Math.imul(x ^ (x >>> 15), x | 1);
    x ^= x + Math.imul(x ^ (x >>> 7), x | 61);
    return Math.floor((((x ^ (x >>> 14)) >>> 0) / 4294967296) * limit);
  }
  of(list) {
    return list[this.below(list.length)];
  }
  chance(percent) {
    return this.below(100) < percent;
  }
}

/** Seeds differ from run to run only where they are asked for: ANYSLOT_SEED. */
export const seed = Number(process.env.ANYSLOT_SEED ?? 1);
