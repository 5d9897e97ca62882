import { ConfigurationError, explainSystemError, nearestName } from "../server/index.ts";
import { exitCode, type Command, type Terminal, UsageError } from "./command.ts";
import { commands, findCommand } from "./commands.ts";
import { helpOf, overview, usageOf } from "./help.ts";
import { packageVersion } from "./package-version.ts";
import { parseCommand } from "./parse-command.ts";

/**
 * Runs a command line and returns its exit code; never throws.
 *
 * Results go to standard output, everything else to standard error. For invalid usage, it prints the reason and a pointer
 * to the help, and returns 2.
 */
export async function runCommandLine(words: readonly string[], terminal: Terminal): Promise<number> {
  try {
    return await dispatch(words, terminal);
  } catch (reason) {
    if (reason instanceof ConfigurationError) return reportProblems(reason.problems, terminal);
    terminal.err(`plantstore: ${explainSystemError(reason)}`);
    if (!(reason instanceof UsageError)) return exitCode.failure;
    terminal.err('run "plantstore --help" for the list of commands');
    return exitCode.usage;
  }
}

async function dispatch(words: readonly string[], terminal: Terminal): Promise<number> {
  const found = findCommand(words);
  if (found !== undefined) return await runCommand(found.command, found.rest, terminal);
  const [first, ...rest] = words;
  if (first === "--version" || first === "-v") return print([packageVersion()], terminal);
  if (first === "--help" || first === "-h") return print(overview(commands), terminal);
  if (first === "help") return print(rest.length === 0 ? overview(commands) : helpOf(requireCommand(rest)), terminal);
  return await runCommand(requireCommand(words), [], terminal);
}

function requireCommand(words: readonly string[]): Command {
  const found = findCommand(words);
  if (found !== undefined) return found.command;
  if (words.length === 0) throw new UsageError("a command is missing");
  const text = words.join(" ");
  const subcommands = commands.filter(({ name }) => name.startsWith(`${text} `)).map(({ name }) => name);
  const names = commands.map(({ name }) => name);
  const near = nearestName(words.slice(0, 2).join(" "), names) ?? nearestName(words[0] ?? "", names);
  const suggestion = subcommands.length > 0 ? subcommands.map(quoted).join(" or ") : near && quoted(near);
  throw new UsageError(`unknown command "${text}"${suggestion === undefined ? "" : `, did you mean ${suggestion}?`}`);
}

function quoted(name: string): string {
  return JSON.stringify(name);
}

async function runCommand(command: Command, words: readonly string[], terminal: Terminal): Promise<number> {
  const { flags, operands } = parseCommand(command, words);
  if (flags["help"] === true) return print(helpOf(command), terminal);
  const { operands: known = [] } = command;
  const least = known.filter(({ optional }) => optional !== true).length;
  if (operands.length < least || operands.length > known.length) throw new UsageError(`usage: ${usageOf(command)}`);
  return await command.run(flags, operands, terminal);
}

function reportProblems(problems: readonly string[], terminal: Terminal): number {
  terminal.err("plantstore: invalid configuration:");
  for (const problem of problems) terminal.err(`  ${problem}`);
  return exitCode.configuration;
}

function print(lines: readonly string[], terminal: Terminal): number {
  for (const line of lines) terminal.out(line);
  return exitCode.ok;
}
