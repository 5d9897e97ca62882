import { parseArgs, type ParseArgsOptionsConfig } from "node:util";
import { nearestName } from "@protoport/gateway/options";
import { type CommandOf, type Flag, flagsOf, type ParsedFlags, textOf, UsageError } from "./command.ts";
import { ofSource, type SettingType } from "./settings/index.ts";

/**
 * Parses the words after a command name into its flags and operands.
 *
 * @throws UsageError for an unknown flag, or an invalid flag value
 */
export function parseCommand<Terminal>(
  command: CommandOf<Terminal>,
  words: readonly string[],
): { readonly flags: ParsedFlags; readonly operands: readonly string[] } {
  const options = optionsOf(flagsOf(command));
  const { tokens } = parseArgs({ args: [...words], options, allowPositionals: true, strict: false, tokens: true });
  for (const token of tokens) {
    if (token.kind === "option" && !Object.hasOwn(options, token.name)) throw unknownFlagError(token, command);
  }
  try {
    const { values, positionals } = parseArgs({ args: [...words], options, allowPositionals: true, strict: true });
    return { flags: values, operands: positionals };
  } catch (reason) {
    throw new UsageError(reason instanceof Error ? reason.message.split("\n", 1)[0] : String(reason), {
      cause: reason,
    });
  }
}

/** Returns a flag's value, or `undefined` if the flag is missing. @throws UsageError for an invalid value */
export function readFlag<T>(flags: ParsedFlags, name: string, type: SettingType<T>): T | undefined {
  const given = textOf(flags[name]);
  return given === undefined ? undefined : readValue(type, `--${name}`, given);
}

/** Returns the value of a single flag or environment variable. @throws UsageError for an invalid value */
export function readValue<T>(type: SettingType<T>, source: string, given: string): T {
  const problems: string[] = [];
  const value = type.read(ofSource("", source, given), (_, problem) => problems.push(problem));
  if (value === undefined) throw new UsageError(`${source} ${problems.join(", ")}`);
  return value;
}

function optionsOf(flags: Readonly<Record<string, Flag>>): ParseArgsOptionsConfig {
  const options = Object.entries(flags).map(([name, { value, multiple = false }]) => {
    return [name, { type: value === undefined ? "boolean" : "string", multiple }] as const;
  });
  return { ...Object.fromEntries(options), help: { type: "boolean", short: "h" } };
}

function unknownFlagError<Terminal>(
  { name, rawName }: { readonly name: string; readonly rawName: string },
  command: CommandOf<Terminal>,
): Error {
  const near = nearestName(name, Object.keys(flagsOf(command)));
  const suggestion = near === undefined ? "" : `, did you mean "--${near}"?`;
  return new UsageError(`unknown flag "${rawName}" of "${command.name}"${suggestion}`);
}
