import { migratePlants } from "../server/index.ts";
import { exitCode, type Command } from "./command.ts";
import { showSeconds } from "./duration.ts";
import { databaseFlag, databaseOf } from "./database-flag.ts";

/** Creates the schema of a store, or migrates it to the version of this release. */
export const migrateCommand: Command = {
  name: "migrate",
  summary: "create the schema of a store, or bring it up to date",
  flags: databaseFlag,
  notes: ["serve also migrates an SQLite file, but never a PostgreSQL database."],
  run: async (flags, _operands, terminal) => {
    const begunMs = performance.now();
    const { from, to } = await migratePlants(databaseOf(flags, terminal));
    const change = from === to ? "" : `: version ${from} became ${to} in ${showSeconds(performance.now() - begunMs)}`;
    terminal.err(`the schema is up to date${change}`);
    return exitCode.ok;
  },
};
