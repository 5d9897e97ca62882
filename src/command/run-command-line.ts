import { type Program, runProgram } from "@protoport/command-line";
import { explainSystemError } from "@protoport/auth/inputs";
import { ConfigurationError } from "../server/index.ts";
import { checkStoreCommand } from "./check.ts";
import { type Command, exitCode, packageVersion, type PlantTerminal } from "./command.ts";
import { moveCommand } from "./move.ts";
import { openApiOfStoreCommand } from "./openapi.ts";
import { serveStoreCommand } from "./serve.ts";
import {
  backupCommand,
  deletionsCommand,
  exportCommand,
  importCommand,
  migrateCommand,
  restoreCommand,
} from "./stores.ts";
import { tokenCreateCommand, tokenListCommand, tokenRevokeCommand } from "./tokens.ts";

/** All commands, in the order in which the help lists them. */
export const commands: readonly Command[] = [
  serveStoreCommand,
  checkStoreCommand,
  tokenCreateCommand,
  tokenListCommand,
  tokenRevokeCommand,
  importCommand,
  exportCommand,
  deletionsCommand,
  backupCommand,
  restoreCommand,
  migrateCommand,
  moveCommand,
  openApiOfStoreCommand,
];

/**
 * Runs a `plantstore` command line and returns its exit code. Never throws.
 *
 * Writes results to standard output, and all other lines to standard error.
 */
export function runCommandLine(words: readonly string[], terminal: PlantTerminal): Promise<number> {
  return runProgram(plantstore, words, terminal);
}

const plantstore: Program<PlantTerminal> = {
  name: "plantstore",
  about: "a plant store over gRPC, gRPC-Web, Connect and REST, on one port.",
  version: packageVersion(),
  commands,
  exitCodes: {
    [exitCode.ok]: "success",
    [exitCode.failure]: "failure",
    [exitCode.usage]: "invalid usage",
    [exitCode.storeFailed]: "failed store",
    [exitCode.configuration]: "invalid configuration",
    [exitCode.interrupted]: "interrupted by SIGINT",
    [exitCode.terminated]: "interrupted by SIGTERM",
  },
  fail: (reason, terminal) => {
    if (reason instanceof ConfigurationError) return reportProblems(reason.problems, terminal);
    terminal.err(`plantstore: ${explainSystemError(reason)}`);
    return exitCode.failure;
  },
};

function reportProblems(problems: readonly string[], terminal: PlantTerminal): number {
  terminal.err("plantstore: invalid configuration:");
  for (const problem of problems) terminal.err(`  ${problem}`);
  return exitCode.configuration;
}
