import { openPlantDatabase } from "../server/index.ts";
import { exitCode, type Command } from "./command.ts";
import { databaseFlag, databaseHelp, databaseOf } from "./database-flag.ts";

/** Prints the ids of all plants. */
export const exportCommand: Command = {
  name: "export",
  synopsis: "[--database-url U]",
  summary: "print a snapshot of the ids of all plants, one per line, sorted",
  options: databaseFlag,
  positionals: [0, 0],
  help: () => [databaseHelp],
  run: async (flags, _positionals, terminal) => {
    await using database = await openPlantDatabase(databaseOf(flags, terminal));
    for await (const ids of database.exportPlants()) await terminal.write(`${ids.join("\n")}\n`);
    return exitCode.ok;
  },
};
