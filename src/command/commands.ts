import type { Command } from "./command.ts";
import { checkCommand } from "./check.ts";
import { moveCommand } from "./move.ts";
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

/** All commands, in the order in which the help lists them. */
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
  moveCommand,
  openApiCommand,
];
