import { createReadStream, statSync } from "node:fs";
import { type ImportProgress, importPlants as importText, openPlantDatabase } from "../server/index.ts";
import type { Command, Terminal } from "./command.ts";
import { databaseFlag, databaseHelp, databaseOf } from "./database-flag.ts";
import { exitCode } from "./exit-code.ts";
import { describeProgress } from "./import-progress.ts";

/** Adds plants, named by a text with one id a line. */
export const importPlants: Command = {
  name: "import",
  synopsis: "[FILE|-] [--restore] [--database-url U]",
  summary: "add plants from a file or standard input, one id a line",
  options: { ...databaseFlag, restore: { type: "boolean" } },
  positionals: [0, 1],
  help: () => [
    "  FILE       the file; - or nothing for standard input",
    "  --restore  bring back plants that have a record of deletion, which are skipped otherwise",
    databaseHelp,
    "",
    "What is there already stays; an import that was interrupted is simply run again.",
  ],
  run: async (flags, [file = "-"], terminal) => {
    await using database = await openPlantDatabase(databaseOf(flags, terminal));
    const text = file === "-" ? terminal.input() : createReadStream(file);
    const counts = await importText(database, text, {
      restore: flags["restore"] === true,
      onProgress: showProgress(file, terminal),
    });
    terminal.progress?.("");
    terminal.out(`${counts.added} added, ${counts.present} there already, ${counts.deleted} skipped as deleted`);
    return exitCode.ok;
  },
};

/** Milliseconds between two lines of progress: eyes follow five a second. */
const progressIntervalMs = 200;

function showProgress(file: string, { progress }: Terminal): (counts: ImportProgress) => void {
  if (progress === undefined) return () => undefined;
  const bytesTotal = file === "-" ? undefined : statSync(file).size;
  const startMs = performance.now();
  let shownMs = startMs;
  return ({ added, present, deleted, bytes }) => {
    const nowMs = performance.now();
    if (nowMs - shownMs < progressIntervalMs) return;
    shownMs = nowMs;
    progress(describeProgress({ ids: added + present + deleted, bytes, bytesTotal, elapsedMs: nowMs - startMs }));
  };
}
