import { levelsInPieces } from "./json-pieces.ts";

/** A number with the digits that the JSON had. */
class Digits {
  readonly text: string;
  constructor(text: string) {
    this.text = text;
  }
}

/** Parses a JSON text into a value of which {@link yamlPieces} writes every digit of its numbers. */
export function parseWithDigits(json: string): unknown {
  return JSON.parse(json, (_key: string, each: unknown, context?: { readonly source?: string }) =>
    typeof each === "number" ? new Digits(context?.source ?? String(each)) : each,
  );
}

/** Writes a value of JSON as YAML 1.2, which YAML 1.1 reads alike, in pieces as `jsonPieces` does. */
export function* yamlPieces(value: unknown): Generator<string> {
  let isFirst = true;
  for (const piece of blockPieces(value, "", levelsInPieces)) {
    yield isFirst ? piece.trimStart() : piece;
    isFirst = false;
  }
  yield "\n";
}

function* blockPieces(value: unknown, indent: string, levels: number): Generator<string> {
  const members = levels === 0 ? [] : membersOf(value);
  if (members.length === 0) yield blockOf(value, indent);
  for (const [key, each] of members) {
    yield `\n${indent}${scalarOf(key)}:`;
    yield* blockPieces(each, `${indent}  `, levels - 1);
  }
}

/** Returns the members of an object that are in its JSON; none for other values. */
function membersOf(value: unknown): readonly (readonly [string, unknown])[] {
  if (typeof value !== "object" || value === null || Array.isArray(value) || value instanceof Digits) return [];
  return Object.entries(value).filter(([, each]) => each !== undefined);
}

/** Writes what follows "key:" or "-": the value on that line, or a block on the next ones. */
function blockOf(value: unknown, indent: string): string {
  if (Array.isArray(value)) {
    if (value.length === 0) return " []";
    return value.map((item) => `\n${indent}-${inItem(blockOf(item, `${indent}  `), indent)}`).join("");
  }
  if (value instanceof Digits) return ` ${value.text}`;
  if (typeof value === "string") return ` ${scalarOf(value)}`;
  if (typeof value !== "object" || value === null) return ` ${String(value)}`;
  const members = membersOf(value);
  if (members.length === 0) return " {}";
  return members.map(([key, each]) => `\n${indent}${scalarOf(key)}:${blockOf(each, `${indent}  `)}`).join("");
}

/** The first line of a block begins behind the "-" of its item. */
function inItem(block: string, indent: string): string {
  return block.replace(`\n${indent}  `, " ");
}

function scalarOf(text: string): string {
  return plain.test(text) && !words.test(text) ? text : JSON.stringify(text);
}

// A letter, "$" or "_" first, so no number, date or sign of YAML; ": ", " #" and the like cannot occur.
const plain = /^[A-Za-z_$](?:[\w.$/-]| (?=[\w$]))*$/;
// What one version of YAML or the other takes for a boolean or for null.
const words = /^(?:true|false|null|yes|no|on|off|y|n)$/i;
