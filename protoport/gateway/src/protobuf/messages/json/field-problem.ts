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
  return typeof step === "number" ? `[${step}]` : `[${quote(step)}]`;
}

/** Maximum UTF-16 units in a quotation from a client's text. The limit keeps logs short. */
const excerptUnitsMax = 64;

/** Quotes a client's text for an error message, as a JSON string that is cut to 64 UTF-16 units. */
export function quote(text: string): string {
  const excerpt = text.length > excerptUnitsMax ? `${text.slice(0, excerptUnitsMax)}…` : text;
  // JSON.stringify escapes the remaining half of a surrogate pair that the cut has split.
  return JSON.stringify(excerpt);
}
