import { parseArgs } from "node:util";
import { nearestName } from "../server/index.ts";
import { type Command, type Flags, UsageError } from "./command.ts";

/**
 * Parses the words behind the name of a command into its flags and arguments.
 *
 * @throws UsageError that names a flag which the command does not have, or what is wrong with the value of one
 */
export function parseCommand(
  command: Command,
  words: readonly string[],
): { readonly flags: Flags; readonly positionals: readonly string[] } {
  const options = { ...command.options, help: { type: "boolean", short: "h" } } as const;
  const { tokens } = parseArgs({ args: [...words], options, allowPositionals: true, strict: false, tokens: true });
  for (const token of tokens) {
    if (token.kind === "option" && !Object.hasOwn(options, token.name)) throw unknownFlag(token, command);
  }
  try {
    const { values, positionals } = parseArgs({ args: [...words], options, allowPositionals: true, strict: true });
    return { flags: values, positionals };
  } catch (reason) {
    throw new UsageError(reason instanceof Error ? reason.message : String(reason), { cause: reason });
  }
}

function unknownFlag({ name, rawName }: { readonly name: string; readonly rawName: string }, command: Command): Error {
  const near = nearestName(name, Object.keys(command.options));
  const meant = near === undefined ? "" : `; did you mean --${near}?`;
  return new UsageError(`${command.name} has no flag ${rawName}${meant}`);
}
