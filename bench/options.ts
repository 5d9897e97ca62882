import { parseArgs } from "node:util";

const options = {
  only: { type: "string" },
  rounds: { type: "string", default: "3" },
  turns: { type: "string", default: "4" },
  against: { type: "string" },
  rates: { type: "boolean", default: false },
  start: { type: "boolean", default: false },
  memory: { type: "boolean", default: false },
  workers: { type: "boolean", default: false },
  stalls: { type: "boolean", default: false },
  watched: { type: "boolean", default: false },
  record: { type: "boolean", default: false },
  help: { type: "boolean", default: false },
} as const;

/**
 * Returns the options of the bench.
 *
 * @throws TypeError for one that there is not
 */
export function parseOptions(
  words: readonly string[],
): ReturnType<typeof parseArgs<{ options: typeof options }>>["values"] {
  return parseArgs({ args: [...words], options }).values;
}

/**
 * Returns the numbers that the words of this program give by flags of these names, or else these.
 *
 * @throws TypeError for another flag
 */
export function numberFlags<Flags extends Readonly<Record<string, number>>>(fallbacks: Flags): Flags {
  const names = Object.keys(fallbacks).map((name) => [name, { type: "string" }] as const);
  const given = Object.entries(parseArgs({ options: Object.fromEntries(names) }).values);
  return { ...fallbacks, ...Object.fromEntries(given.map(([name, text]) => [name, Number(text)])) };
}
