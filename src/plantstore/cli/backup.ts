import { backUp } from "../server/index.ts";
import { exitCode, type Command, UsageError } from "./command.ts";
import { databaseFlag, databaseOf } from "./database-flag.ts";

/** Copies an SQLite store while it is being served. */
export const backupCommand: Command = {
  name: "backup",
  summary: "copy a snapshot of an SQLite store while it is being served",
  operands: [{ name: "FILE", about: "the copy, which is a store too; must not exist yet" }],
  flags: databaseFlag,
  run: async (flags, [file = ""], terminal) => {
    const database = databaseOf(flags, terminal);
    if (database.kind !== "sqlite")
      throw new UsageError("use the tools of PostgreSQL to back up its databases: see pg_dump");
    backUp(database.path, file);
    terminal.err(`copied ${database.path} to ${file}`);
    return exitCode.ok;
  },
};
