/** Numbers that a seed determines (mulberry32). */
export class Dice {
  #state: number;

  constructor(seed: number) {
    this.#state = seed;
  }

  /** From 0 on and below `sides`. */
  roll(sides: number): number {
    this.#state = (this.#state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(this.#state ^ (this.#state >>> 15), 1 | this.#state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) % sides;
  }

  /** So many octets at most. */
  bytes(most: number): Buffer {
    return Buffer.from(Array.from({ length: this.roll(most + 1) }, () => this.roll(256)));
  }

  /** One of some choices. Throws when there are none. */
  oneOf<T>(choices: readonly T[]): T {
    const choice = choices[this.roll(choices.length)];
    if (choice === undefined) throw new Error("there is nothing to choose from");
    return choice;
  }
}
