import { parseArgs } from "node:util";

const options = {
  only: { type: "string" },
  rounds: { type: "string", default: "3" },
  turns: { type: "string", default: "3" },
  against: { type: "string" },
  watched: { type: "boolean", default: false },
  verify: { type: "boolean", default: false },
  record: { type: "boolean", default: false },
  help: { type: "boolean", default: false },
} as const;

/**
 * Returns the bench's options.
 *
 * @throws TypeError for an unknown option
 */
export function parseOptions(
  words: readonly string[],
): ReturnType<typeof parseArgs<{ options: typeof options }>>["values"] {
  return parseArgs({ args: [...words], options }).values;
}

/**
 * Returns the numbers in this program's flags, or the defaults for missing flags.
 *
 * @throws TypeError for an unknown flag
 */
export function numberFlags<Flags extends Readonly<Record<string, number>>>(defaults: Flags): Flags {
  const names = Object.keys(defaults).map((name) => [name, { type: "string" }] as const);
  const entries = Object.entries(parseArgs({ options: Object.fromEntries(names) }).values);
  return { ...defaults, ...Object.fromEntries(entries.map(([name, text]) => [name, Number(text)])) };
}
