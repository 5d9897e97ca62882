import type { DescField } from "@bufbuild/protobuf";

/**
 * Thrown when a text is not a value of the field it is for.
 *
 * It never leaves this room and `rest/`, which make it a `ConnectError` of `InvalidArgument` that names the field.
 */
export class FieldProblem extends Error {
  override readonly name = "FieldProblem";
}

/** One step of a path to a value: a field, an index in a list, or a key of a map. */
export type PathStep = DescField | number | string;

/** Prints a path for error messages: `order.tags[2]`, `labels["a"]`; `""` for the message itself. */
export function printPath(path: readonly PathStep[]): string {
  return path.map(printStep).join("").replace(/^\./, "");
}

function printStep(step: PathStep): string {
  if (typeof step === "object") return `.${step.name}`;
  return typeof step === "number" ? `[${step}]` : `[${quote(step)}]`;
}

/** The longest excerpt of a client's text in an error, in UTF-16 units: recognisable, too short to flood a log. */
const excerptUnitsMax = 64;

/** Quotes a client's text for an error message: as JSON, cut to 64 units. */
export function quote(text: string): string {
  const excerpt = text.length > excerptUnitsMax ? `${text.slice(0, excerptUnitsMax)}…` : text;
  // JSON.stringify escapes a surrogate that the cut has left alone.
  return JSON.stringify(excerpt);
}
