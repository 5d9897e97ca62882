import { parseArgs } from "node:util";
import { ConfigurationError } from "../server/index.ts";
import { exitCode, type Command, type Flags, type Terminal, UsageError } from "./command.ts";
import { backupCommand } from "./backup.ts";
import { checkCommand } from "./check.ts";
import { deletionsCommand } from "./deletions.ts";
import { serveCommand } from "./serve.ts";
import { tokenCreateCommand } from "./token-create.ts";
import { exportCommand } from "./export.ts";
import { importCommand } from "./import.ts";
import { migrateCommand } from "./migrate.ts";
import { openApiCommand } from "./openapi.ts";
import { packageVersion } from "./package-version.ts";

const commands: readonly Command[] = [
  serveCommand,
  tokenCreateCommand,
  checkCommand,
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
    terminal.err(`plantstore: ${reason instanceof Error ? reason.message : String(reason)}`);
    if (!(reason instanceof UsageError)) return exitCode.failure;
    terminal.err("plantstore --help shows what there is");
    return exitCode.usage;
  }
}

async function dispatch(words: readonly string[], terminal: Terminal): Promise<number> {
  const command = commands.find(({ name }) => name.split(" ").every((word, index) => words[index] === word));
  if (command !== undefined) return await runCommand(command, words.slice(command.name.split(" ").length), terminal);
  if (words[0] === "--version") return print([packageVersion()], terminal);
  if (words[0] === "--help" || words[0] === "help") return print(overview(), terminal);
  throw new UsageError(words.length === 0 ? "a command is missing" : `there is no command "${words.join(" ")}"`);
}

async function runCommand(command: Command, words: readonly string[], terminal: Terminal): Promise<number> {
  const { flags, positionals } = parse(command, words);
  if (flags["help"] === true) return print([usageOf(command), "", ...command.help()], terminal);
  const [least, most] = command.positionals;
  if (positionals.length < least || positionals.length > most) throw new UsageError(`usage: ${usageOf(command)}`);
  return await command.run(flags, positionals, terminal);
}

function parse(command: Command, words: readonly string[]): { flags: Flags; positionals: readonly string[] } {
  const options = { ...command.options, help: { type: "boolean" } } as const;
  try {
    const { values, positionals } = parseArgs({ args: [...words], options, allowPositionals: true, strict: true });
    return { flags: values, positionals };
  } catch (reason) {
    throw new UsageError(reason instanceof Error ? reason.message : String(reason), { cause: reason });
  }
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

function usageOf(command: Command): string {
  return `plantstore ${command.name} ${command.synopsis}`;
}

function overview(): string[] {
  const width = Math.max(...commands.map(({ name }) => name.length)) + 2;
  return [
    "plantstore: a plant store over gRPC, gRPC-Web, Connect and REST, on one port.",
    "",
    "Commands:",
    ...commands.map(({ name, summary }) => `  ${name.padEnd(width)}${summary}`),
    "",
    "plantstore COMMAND --help shows the flags of a command; plantstore --version the version.",
    "Exit codes: 0 done, 1 failed, 2 wrong usage, 78 wrong configuration.",
  ];
}
