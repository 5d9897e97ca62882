import type { DescField } from "@bufbuild/protobuf";
import type { NamedOption } from "@plantstore/http";

/**
 * Thrown when a text is not a valid value for its field.
 *
 * This module and `rest/` convert it to a `ConnectError` with `InvalidArgument` that names the field.
 */
export class FieldProblem extends Error {
  override readonly name = "FieldProblem";
  /** The option that accepts the text, or `undefined` if there is none. */
  readonly option: NamedOption | undefined;

  constructor(message: string, option?: NamedOption) {
    super(message);
    this.option = option;
  }
}

/** One step of a path to a value: a field, an index in a list, or a map key. */
export type PathStep = DescField | number | string;

/** Prints a path for error messages: `order.tags[2]`, `labels["a"]`; `""` for the message itself. */
export function printPath(path: readonly PathStep[]): string {
  return path.map(printStep).join("").replace(/^\./, "");
}

function printStep(step: PathStep): string {
  if (typeof step === "object") return `.${step.name}`;
  return typeof step === "number" ? `[${step}]` : `[${quote(step)}]`;
}

/** How much of a client's text an error quotes, in UTF-16 units: enough to recognize, too short to flood a log. */
const excerptUnitsMax = 64;

/** Quotes a client's text for an error message: as JSON, cut to 64 units. */
export function quote(text: string): string {
  const excerpt = text.length > excerptUnitsMax ? `${text.slice(0, excerptUnitsMax)}…` : text;
  // If the cut splits a surrogate pair, JSON.stringify escapes the remaining half.
  return JSON.stringify(excerpt);
}
