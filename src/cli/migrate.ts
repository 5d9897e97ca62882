import { migratePlants } from "../server/index.ts";
import type { Command } from "./command.ts";
import { databaseFlag, databaseHelp, databaseOf } from "./database-flag.ts";
import { exitCode } from "./exit-code.ts";

/** Creates a store's schema, or brings it to this release's version. */
export const migrate: Command = {
  name: "migrate",
  synopsis: "[--database-url U]",
  summary: "create the schema of a store, or bring it up to date",
  options: databaseFlag,
  positionals: [0, 0],
  help: () => [
    databaseHelp,
    "",
    "An SQLite file is brought up to date by `serve` too, a PostgreSQL database only by this.",
  ],
  run: async (flags, _positionals, terminal) => {
    await migratePlants(databaseOf(flags, terminal));
    terminal.err("the schema is up to date");
    return exitCode.ok;
  },
};
