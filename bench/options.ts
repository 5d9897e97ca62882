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
