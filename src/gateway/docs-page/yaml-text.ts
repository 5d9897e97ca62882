/** A number with the digits that the JSON had. */
class Digits {
  readonly text: string;
  constructor(text: string) {
    this.text = text;
  }
}

/** Writes a JSON text as YAML 1.2, which YAML 1.1 reads alike, with every digit of its numbers. */
export function writeYaml(json: string): string {
  const value: unknown = JSON.parse(json, (_key: string, each: unknown, context?: { readonly source?: string }) =>
    typeof each === "number" ? new Digits(context?.source ?? String(each)) : each,
  );
  return `${blockOf(value, "").trimStart()}\n`;
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
  const members = Object.entries(value);
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
