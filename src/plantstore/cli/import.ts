import { createReadStream, statSync } from "node:fs";
import { importPlants, openPlantDatabase } from "../server/index.ts";
import { exitCode, type Command } from "./command.ts";
import { showSeconds } from "./duration.ts";
import { databaseFlag, databaseOf } from "./database-flag.ts";

/** Adds plants from a text with one id per line. */
export const importCommand: Command = {
  name: "import",
  summary: "add plants from a file or standard input, one id per line",
  operands: [{ name: "FILE", about: "the file; - or nothing for standard input", optional: true }],
  flags: {
    restore: { about: "restore plants that have a deletion record; otherwise these are skipped" },
    ...databaseFlag,
  },
  notes: ["Existing plants stay; an interrupted import can simply be run again."],
  run: async (flags, [file = "-"], terminal) => {
    if (file !== "-" && statSync(file).isDirectory()) throw new Error(`${file} is a folder, not a file`);
    await using database = await openPlantDatabase(databaseOf(flags, terminal));
    const text = file === "-" ? terminal.input() : createReadStream(file);
    const begunMs = performance.now();
    let ids = 0;
    const onBatch = (batch: number): void => void (ids += batch);
    const took = (): string => showSeconds(performance.now() - begunMs);
    const options = { restore: flags["restore"] === true, onBatch };
    const counts = await importPlants(database, text, options).catch((reason: unknown) => {
      if (ids > 0) terminal.err(`stopped after ${took()}; the first ${inGroups(ids)} ids are imported`);
      throw reason;
    });
    terminal.err(`took ${took()} for ${inGroups(ids)} ids`);
    terminal.out(`${counts.added} added, ${counts.present} there already, ${counts.deleted} skipped as deleted`);
    return exitCode.ok;
  },
};

// A shared formatter would be created at the start of every command, which takes as long as loading half of its
// modules.
function inGroups(number: number): string {
  return number.toLocaleString("en-US", { maximumFractionDigits: 0 });
}
