import { migratePlants } from "../server/index.ts";
import { exitCode, type Command } from "./command.ts";
import { databaseFlag, databaseOf } from "./database-flag.ts";

/** Creates the schema of a store, or migrates it to the version of this release. */
export const migrateCommand: Command = {
  name: "migrate",
  summary: "create the schema of a store, or bring it up to date",
  flags: databaseFlag,
  notes: ["serve also migrates an SQLite file, but never a PostgreSQL database."],
  run: async (flags, _operands, terminal) => {
    await migratePlants(databaseOf(flags, terminal));
    terminal.err("the schema is up to date");
    return exitCode.ok;
  },
};
