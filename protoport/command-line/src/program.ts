import { nearestName } from "@protoport/gateway/options";
import { type CommandOf, type Program, UsageError } from "./command.ts";
import { helpOf, overview, usageOf } from "./help.ts";
import { parseCommand } from "./parse-command.ts";

/** Prints a program's output line by line. */
export interface CommandOutput {
  readonly out: (line: string) => void;
  readonly err: (line: string) => void;
}

/** The exit code for an invalid command line, as in shells. */
const usageExitCode = 2;

/**
 * Runs a command line and returns its exit code. Never throws.
 *
 * For invalid usage, the function writes the reason and a pointer to the help to standard error, and returns 2.
 */
export async function runProgram<Terminal extends CommandOutput>(
  program: Program<Terminal>,
  words: readonly string[],
  terminal: Terminal,
): Promise<number> {
  try {
    return await dispatch(program, words, terminal);
  } catch (reason) {
    if (!(reason instanceof UsageError)) return program.fail(reason, terminal);
    const found = findCommand(program, words);
    terminal.err(`${program.name}: ${reason.message}`);
    terminal.err(`Try '${[program.name, ...(found === undefined ? [] : [found.command.name])].join(" ")} --help'.`);
    return usageExitCode;
  }
}

async function dispatch<Terminal extends CommandOutput>(
  program: Program<Terminal>,
  words: readonly string[],
  terminal: Terminal,
): Promise<number> {
  const [first, ...rest] = words;
  if (first === "--version" || first === "-v") return print([program.version], terminal);
  if (first === "--help" || first === "-h") return print(overview(program), terminal);
  const found = findCommand(program, words);
  if (found !== undefined) return await runCommand(program, found.command, found.rest, terminal);
  if (first !== "help") return await runCommand(program, requireCommand(program, words), [], terminal);
  if (rest.length === 0) return print(overview(program), terminal);
  return print(helpOf(program.name, requireCommand(program, rest)), terminal);
}

// Returns the command that the first words name, or the default command, and the remaining words.
function findCommand<Terminal>(
  { commands, defaultCommand }: Program<Terminal>,
  words: readonly string[],
): { readonly command: CommandOf<Terminal>; readonly rest: readonly string[] } | undefined {
  const command = commands.find(({ name }) => name.split(" ").every((word, index) => words[index] === word));
  if (command !== undefined) return { command, rest: words.slice(command.name.split(" ").length) };
  return defaultCommand !== undefined && (words[0] === undefined || words[0].startsWith("-"))
    ? { command: defaultCommand, rest: words }
    : undefined;
}

function requireCommand<Terminal>(program: Program<Terminal>, words: readonly string[]): CommandOf<Terminal> {
  const found = findCommand(program, words);
  if (found !== undefined) return found.command;
  if (words.length === 0) throw new UsageError("a command is missing");
  const text = words.join(" ");
  const names = program.commands.map(({ name }) => name);
  const subcommands = names.filter((name) => name.startsWith(`${text} `));
  const near = nearestName(words.slice(0, 2).join(" "), names) ?? nearestName(words[0] ?? "", names);
  const suggestion = subcommands.length > 0 ? subcommands.map(quoteName).join(" or ") : near && quoteName(near);
  throw new UsageError(`unknown command "${text}"${suggestion === undefined ? "" : `, did you mean ${suggestion}?`}`);
}

function quoteName(name: string): string {
  return JSON.stringify(name);
}

async function runCommand<Terminal extends CommandOutput>(
  program: Program<Terminal>,
  command: CommandOf<Terminal>,
  words: readonly string[],
  terminal: Terminal,
): Promise<number> {
  const { flags, operands } = parseCommand(command, words);
  if (flags["help"] === true) return print(helpOf(program.name, command), terminal);
  const { operands: known = [] } = command;
  const least = known.filter(({ optional }) => optional !== true).length;
  if (operands.length < least || operands.length > known.length)
    throw new UsageError(`usage: ${usageOf(program.name, command)}`);
  return await command.run(flags, operands, terminal);
}

function print(lines: readonly string[], terminal: CommandOutput): number {
  for (const line of lines) terminal.out(line);
  return 0;
}
