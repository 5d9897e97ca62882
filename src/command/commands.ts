import type { Command } from "./command.ts";
import { checkCommand } from "./check.ts";
import { openApiCommand } from "./openapi.ts";
import { serveCommand } from "./serve.ts";
import {
  backupCommand,
  deletionsCommand,
  exportCommand,
  importCommand,
  migrateCommand,
  restoreCommand,
} from "./stores.ts";
import { tokenCreateCommand, tokenListCommand, tokenRevokeCommand } from "./tokens.ts";

/** All commands, in the order of the help. */
export const commands: readonly Command[] = [
  serveCommand,
  checkCommand,
  tokenCreateCommand,
  tokenListCommand,
  tokenRevokeCommand,
  importCommand,
  exportCommand,
  deletionsCommand,
  backupCommand,
  restoreCommand,
  migrateCommand,
  openApiCommand,
];

/** Returns the command that the words begin with, and the words after its name; `undefined` if there is none. */
export function findCommand(
  words: readonly string[],
): { readonly command: Command; readonly rest: readonly string[] } | undefined {
  const command = commands.find(({ name }) => name.split(" ").every((word, index) => words[index] === word));
  return command && { command, rest: words.slice(command.name.split(" ").length) };
}
