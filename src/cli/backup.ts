import { backUp } from "../server/index.ts";
import { type Command, UsageError } from "./command.ts";
import { databaseFlag, databaseHelp, databaseOf } from "./database-flag.ts";
import { exitCode } from "./exit-code.ts";

/** Copies an SQLite store while it is served. */
export const backup: Command = {
  name: "backup",
  synopsis: "FILE [--database-url U]",
  summary: "copy an SQLite store as it is at one moment, while it is served",
  options: databaseFlag,
  positionals: [1, 1],
  help: () => ["  FILE  the copy, a store of its own; must not be there yet", databaseHelp],
  run: async (flags, [file = ""], terminal) => {
    const database = databaseOf(flags, terminal);
    if (database.kind !== "sqlite") throw new UsageError("a server's own tools back up its databases: see pg_dump");
    backUp(database.path, file);
    terminal.err(`copied ${database.path} to ${file}`);
    return exitCode.ok;
  },
};
