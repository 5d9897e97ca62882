/** A seeded random number generator (mulberry32). */
export class Dice {
  #state: number;

  constructor(seed: number) {
    this.#state = seed;
  }

  /** Returns an integer from 0 to `sides` - 1. */
  roll(sides: number): number {
    this.#state = (this.#state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(this.#state ^ (this.#state >>> 15), 1 | this.#state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) % sides;
  }

  /** Returns up to `most` random octets. */
  bytes(most: number): Buffer {
    return Buffer.from(Array.from({ length: this.roll(most + 1) }, () => this.roll(256)));
  }

  /** Returns a random choice. @throws Error if there are no choices */
  oneOf<T>(choices: readonly T[]): T {
    const choice = choices[this.roll(choices.length)];
    if (choice === undefined) throw new Error("the choices must not be empty");
    return choice;
  }
}
