import type { Command } from "./command.ts";
import { backupCommand } from "./backup.ts";
import { checkCommand } from "./check.ts";
import { deletionsCommand } from "./deletions.ts";
import { exportCommand } from "./export.ts";
import { importCommand } from "./import.ts";
import { migrateCommand } from "./migrate.ts";
import { openApiCommand } from "./openapi.ts";
import { serveCommand } from "./serve.ts";
import { tokenCreateCommand } from "./token-create.ts";
import { tokenListCommand } from "./token-list.ts";
import { tokenRevokeCommand } from "./token-revoke.ts";

/** Every command, in the order of the help. */
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
  migrateCommand,
  openApiCommand,
];

/** Returns the command whose name the words begin with, and the words after it; `undefined` if there is none. */
export function findCommand(
  words: readonly string[],
): { readonly command: Command; readonly rest: readonly string[] } | undefined {
  const command = commands.find(({ name }) => name.split(" ").every((word, index) => words[index] === word));
  return command && { command, rest: words.slice(command.name.split(" ").length) };
}
