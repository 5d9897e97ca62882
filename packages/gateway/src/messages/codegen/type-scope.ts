import type { Scope } from "./make-function.ts";

/** A name or number of a descriptor as it stands in made code. */
export const literal = (value: string | number): string => JSON.stringify(value);

/** The scope of one function that is made: the same for all types, and what only this type refers to. */
export class TypeScope {
  readonly #values: Record<string, unknown>;
  #count = 0;

  constructor(common: Scope) {
    this.#values = { ...common };
  }

  /** Adds a value, and returns the name under which the text refers to it. */
  name(value: unknown): string {
    this.#count += 1;
    const name = `own${String(this.#count)}`;
    this.#values[name] = value;
    return name;
  }

  get values(): Scope {
    return this.#values;
  }
}
