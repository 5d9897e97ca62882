import { openPlantDatabase } from "../server/index.ts";
import { exitCode, type Command } from "./command.ts";
import { databaseFlag, databaseOf } from "./database-flag.ts";

/** Prints the ids of all plants. */
export const exportCommand: Command = {
  name: "export",
  summary: "print a snapshot of the ids of all plants, one per line, sorted",
  flags: databaseFlag,
  run: async (flags, _operands, terminal) => {
    await using database = await openPlantDatabase(databaseOf(flags, terminal));
    for await (const ids of database.exportPlants()) await terminal.write(`${ids.join("\n")}\n`);
    return exitCode.ok;
  },
};
