import { type PathStep, printPath, quote } from "./field-problem.ts";

// Maximum unknown names that a response lists. Further names are only counted.
const namesMax = 16;

/** Collects the first 16 unknown fields and enum names in a request, and counts all of them. */
export class UnknownNames {
  readonly #names: string[] = [];
  #count = 0;

  /** The first 16 unknown names as the client wrote them, each with its path from the message. */
  get names(): readonly string[] {
    return this.#names;
  }

  get count(): number {
    return this.#count;
  }

  /** Adds an unknown field. @param path - the path to the message with the field */
  addField(name: string, path: readonly PathStep[] = []): void {
    if (++this.#count <= namesMax) this.#names.push(path.length === 0 ? name : `${printPath(path)}.${name}`);
  }

  /** Adds an unknown enum value. @param path - the path to the enum field */
  addEnumValue(name: string, path: readonly PathStep[]): void {
    if (++this.#count <= namesMax) this.#names.push(`${printPath(path)}=${quote(name)}`);
  }

  /** Returns the error message that lists the unknown names. @param noun - the noun for the names, such as "field" */
  describe(noun: string): string {
    const moreCount = this.#count - this.#names.length;
    const quotedNames = this.#names.map(quote).join(", ");
    return `unknown ${noun}${this.#count > 1 ? "s" : ""} ${quotedNames}${moreCount > 0 ? ` and ${moreCount} more` : ""}`;
  }
}
