import { openPlantDatabase } from "../server/index.ts";
import type { Command } from "./command.ts";
import { databaseFlag, databaseHelp, databaseOf } from "./database-flag.ts";
import { exitCode } from "./exit-code.ts";

/** Prints the ids of all plants. */
export const exportPlants: Command = {
  name: "export",
  synopsis: "[--database-url U]",
  summary: "print the ids of all plants of one moment, one a line, sorted",
  options: databaseFlag,
  positionals: [0, 0],
  help: () => [databaseHelp],
  run: async (flags, _positionals, terminal) => {
    await using database = await openPlantDatabase(databaseOf(flags, terminal));
    for await (const ids of database.exportPlants()) await terminal.write(`${ids.join("\n")}\n`);
    return exitCode.ok;
  },
};
