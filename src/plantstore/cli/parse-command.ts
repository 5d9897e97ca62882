import { parseArgs, type ParseArgsOptionsConfig } from "node:util";
import { type Command, type Flag, type GivenFlags, UsageError } from "./command.ts";
import { flagsOf } from "./setting-flags.ts";

/**
 * Parses the words after the name of a command into its flags and operands.
 *
 * @throws UsageError that names a flag that the command does not have, or says what is wrong with a flag's value
 */
export function parseCommand(
  command: Command,
  words: readonly string[],
): { readonly flags: GivenFlags; readonly operands: readonly string[] } {
  try {
    const { values, positionals } = parseArgs({
      args: [...words],
      options: optionsOf(flagsOf(command)),
      allowPositionals: true,
    });
    return { flags: values, operands: positionals };
  } catch (reason) {
    throw new UsageError(reason instanceof Error ? reason.message : String(reason), { cause: reason });
  }
}

function optionsOf(flags: Readonly<Record<string, Flag>>): ParseArgsOptionsConfig {
  const options = Object.entries(flags).map(([name, { value, multiple = false }]) => {
    return [name, { type: value === undefined ? "boolean" : "string", multiple }] as const;
  });
  return { ...Object.fromEntries(options), help: { type: "boolean", short: "h" } };
}
