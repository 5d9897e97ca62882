import type { Scope } from "./compile-function.ts";

/** Returns a descriptor's name or number as a literal for generated code. */
export const literal = (value: string | number): string => JSON.stringify(value);

/** The scope of one generated function, with the values common to all types and the type's own values. */
export class TypeScope {
  readonly #values: Record<string, unknown>;
  #count = 0;

  constructor(common: Scope) {
    this.#values = { ...common };
  }

  /** Adds a value, and returns its name in the generated source. */
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
