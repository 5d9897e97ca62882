import { backUp } from "../server/index.ts";
import { exitCode, type Command, UsageError } from "./command.ts";
import { databaseFlag, databaseHelp, databaseOf } from "./database-flag.ts";

/** Copies an SQLite store while it is being served. */
export const backupCommand: Command = {
  name: "backup",
  synopsis: "FILE [--database-url U]",
  summary: "copy a snapshot of an SQLite store while it is being served",
  options: databaseFlag,
  positionals: [1, 1],
  help: () => ["  FILE  the copy, which is a store too; must not exist yet", databaseHelp],
  run: async (flags, [file = ""], terminal) => {
    const database = databaseOf(flags, terminal);
    if (database.kind !== "sqlite")
      throw new UsageError("use the tools of PostgreSQL to back up its databases: see pg_dump");
    backUp(database.path, file);
    terminal.err(`copied ${database.path} to ${file}`);
    return exitCode.ok;
  },
};
