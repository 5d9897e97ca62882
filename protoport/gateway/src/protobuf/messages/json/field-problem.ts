import type { DescField } from "@bufbuild/protobuf";
import type { NamedOption } from "../../../http/index.ts";

/** Thrown for a text that is not a valid value. Callers convert it to an `InvalidArgument` that names the field. */
export class FieldProblem extends Error {
  override readonly name = "FieldProblem";
  /** The option that makes the server accept the text, if any. */
  readonly option: NamedOption | undefined;

  constructor(message: string, option?: NamedOption) {
    super(message);
    this.option = option;
  }
}

/** One step in the path to a value, which is a field, a list index or a map key. */
export type PathStep = DescField | number | string;

/** Prints a path for error messages, such as `order.tags[2]` or `labels["a"]`. Prints `""` for the message itself. */
export function printPath(path: readonly PathStep[]): string {
  return path.map(printStep).join("").replace(/^\./, "");
}

function printStep(step: PathStep): string {
  if (typeof step === "object") return `.${step.name}`;
  return typeof step === "number" ? `[${step}]` : `[${quoteValue(step)}]`;
}

/** Maximum UTF-16 units in a quotation from a client's text. The limit keeps logs short. */
const maxExcerptUnits = 64;

/** Quotes a client's text for an error message, as a JSON string that is cut to 64 UTF-16 units. */
export function quoteValue(text: string): string {
  const excerpt = text.length > maxExcerptUnits ? `${text.slice(0, maxExcerptUnits)}…` : text;
  // JSON.stringify escapes the remaining half of a surrogate pair that the cut has split.
  return JSON.stringify(excerpt);
}

// Maximum unknown names that a response lists. Further names are only counted.
const maxNames = 16;

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
    if (++this.#count <= maxNames) this.#names.push(path.length === 0 ? name : `${printPath(path)}.${name}`);
  }

  /** Adds an unknown enum value. @param path - the path to the enum field */
  addEnumValue(name: string, path: readonly PathStep[]): void {
    if (++this.#count <= maxNames) this.#names.push(`${printPath(path)}=${quoteValue(name)}`);
  }

  /** Returns the error message that lists the unknown names. @param noun - the noun for the names, such as "field" */
  describe(noun: string): string {
    return `unknown ${noun}${this.#count > 1 ? "s" : ""} ${this.list()}`;
  }

  /** Returns the first 16 names in quotes, and the number of the others. */
  list(): string {
    const moreCount = this.#count - this.#names.length;
    return this.#names.map(quoteValue).join(", ") + (moreCount > 0 ? ` and ${moreCount} more` : "");
  }
}
