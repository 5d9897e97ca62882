import { ConfigurationError, explainSystemError, nearestName } from "../server/index.ts";
import { exitCode, type Command, type Terminal, UsageError } from "./command.ts";
import { backupCommand } from "./backup.ts";
import { checkCommand } from "./check.ts";
import { deletionsCommand } from "./deletions.ts";
import { parseCommand } from "./parse-command.ts";
import { serveCommand } from "./serve.ts";
import { tokenCreateCommand } from "./token-create.ts";
import { tokenListCommand } from "./token-list.ts";
import { tokenRevokeCommand } from "./token-revoke.ts";
import { exportCommand } from "./export.ts";
import { importCommand } from "./import.ts";
import { migrateCommand } from "./migrate.ts";
import { openApiCommand } from "./openapi.ts";
import { packageVersion } from "./package-version.ts";

const commands: readonly Command[] = [
  serveCommand,
  checkCommand,
  tokenCreateCommand,
  tokenListCommand,
  tokenRevokeCommand,
  importCommand,
  exportCommand,
  deletionsCommand,
  backupCommand,
  migrateCommand,
  openApiCommand,
];

/**
 * Runs a command line and returns its exit code; never throws.
 *
 * Results go to standard output, everything else to standard error. Wrong usage gets the reason, a pointer to the help,
 * and exit code 2.
 */
export async function runCommandLine(words: readonly string[], terminal: Terminal): Promise<number> {
  try {
    return await dispatch(words, terminal);
  } catch (reason) {
    if (reason instanceof ConfigurationError) return reportProblems(reason.problems, terminal);
    terminal.err(`plantstore: ${explainSystemError(reason)}`);
    if (!(reason instanceof UsageError)) return exitCode.failure;
    terminal.err("plantstore --help shows what there is");
    return exitCode.usage;
  }
}

async function dispatch(words: readonly string[], terminal: Terminal): Promise<number> {
  const command = findCommand(words);
  if (command !== undefined) return await runCommand(command, words.slice(lengthOf(command)), terminal);
  const [first, ...rest] = words;
  if (first === "--version" || first === "-v") return print([packageVersion()], terminal);
  if (first === "--help" || first === "-h") return print(overview(), terminal);
  if (first === "help") return print(rest.length === 0 ? overview() : helpOf(requireCommand(rest)), terminal);
  return await runCommand(requireCommand(words), [], terminal);
}

function findCommand(words: readonly string[]): Command | undefined {
  return commands.find(({ name }) => name.split(" ").every((word, index) => words[index] === word));
}

function requireCommand(words: readonly string[]): Command {
  const command = findCommand(words);
  if (command !== undefined) return command;
  if (words.length === 0) throw new UsageError("a command is missing");
  const text = words.join(" ");
  const longer = commands.filter(({ name }) => name.startsWith(`${text} `)).map(({ name }) => name);
  const names = commands.map(({ name }) => name);
  const near =
    nearestName(text, names) ?? nearestName(words.slice(0, 2).join(" "), names) ?? nearestName(words[0] ?? "", names);
  const meant = longer.length > 0 ? longer.join(" or ") : near;
  throw new UsageError(`there is no command "${text}"${meant === undefined ? "" : `; did you mean ${meant}?`}`);
}

async function runCommand(command: Command, words: readonly string[], terminal: Terminal): Promise<number> {
  const { flags, positionals } = parseCommand(command, words);
  if (flags["help"] === true) return print(helpOf(command), terminal);
  const [least, most] = command.positionals;
  if (positionals.length < least || positionals.length > most) throw new UsageError(`usage: ${usageOf(command)}`);
  return await command.run(flags, positionals, terminal);
}

function reportProblems(problems: readonly string[], terminal: Terminal): number {
  terminal.err("plantstore: the configuration cannot be used:");
  for (const problem of problems) terminal.err(`  ${problem}`);
  return exitCode.configuration;
}

function print(lines: readonly string[], terminal: Terminal): number {
  for (const line of lines) terminal.out(line);
  return exitCode.ok;
}

function helpOf(command: Command): string[] {
  return [usageOf(command), "", ...command.help()];
}

function usageOf(command: Command): string {
  return `plantstore ${command.name} ${command.synopsis}`;
}

function lengthOf({ name }: Command): number {
  return name.split(" ").length;
}

function overview(): string[] {
  const width = Math.max(...commands.map(({ name }) => name.length)) + 2;
  return [
    "plantstore: a plant store over gRPC, gRPC-Web, Connect and REST, on one port.",
    "",
    "Commands:",
    ...commands.map(({ name, summary }) => `  ${name.padEnd(width)}${summary}`),
    "",
    "plantstore help COMMAND, or COMMAND -h, shows the flags of a command; plantstore -v the version.",
    "Exit codes: 0 done, 1 failed, 2 wrong usage, 78 wrong configuration.",
  ];
}
