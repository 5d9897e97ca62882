import { createReadStream, statSync } from "node:fs";
import { type ImportProgress, importPlants, openPlantDatabase } from "../server/index.ts";
import { exitCode, type Command, type Terminal } from "./command.ts";
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
    const show = showProgress(file, terminal);
    const begunMs = performance.now();
    let ids = 0;
    const onProgress = (progress: ImportProgress): void => {
      ids = progress.added + progress.present + progress.deleted;
      show(progress);
    };
    const took = (): string => showSeconds(performance.now() - begunMs);
    const options = { restore: flags["restore"] === true, onProgress };
    const counts = await importPlants(database, text, options).catch((reason: unknown) => {
      terminal.progress?.("");
      if (ids > 0) terminal.err(`stopped after ${took()}; the first ${inGroups(ids)} ids are imported`);
      throw reason;
    });
    terminal.progress?.("");
    terminal.err(`took ${took()} for ${inGroups(ids)} ids`);
    terminal.out(`${counts.added} added, ${counts.present} there already, ${counts.deleted} skipped as deleted`);
    return exitCode.ok;
  },
};

/** Milliseconds between two updates of the progress. */
const progressIntervalMs = 200;

function showProgress(file: string, { progress }: Terminal): (counts: ImportProgress) => void {
  if (progress === undefined) return () => undefined;
  const bytesTotal = lengthOf(file);
  const startMs = performance.now();
  let shownMs = startMs;
  return ({ added, present, deleted, bytes }) => {
    const nowMs = performance.now();
    if (nowMs - shownMs < progressIntervalMs) return;
    shownMs = nowMs;
    progress(describeProgress({ ids: added + present + deleted, bytes, bytesTotal, elapsedMs: nowMs - startMs }));
  };
}

/** Returns the bytes in a file; `undefined` for "-" and for pipes and devices, which say that they have none. */
export function lengthOf(file: string): number | undefined {
  const stats = file === "-" ? undefined : statSync(file);
  return stats?.isFile() === true ? stats.size : undefined;
}

/** The progress of an import. */
export interface ImportState {
  readonly ids: number;
  readonly bytes: number;
  /** `undefined` when the length of the input is unknown, as with a pipe. */
  readonly bytesTotal: number | undefined;
  readonly elapsedMs: number;
}

/** Returns a line such as "1,200,000 ids, 400,000/s, 60 %, 2 s left"; without a length it ends after the rate. */
export function describeProgress({ ids, bytes, bytesTotal, elapsedMs }: ImportState): string {
  const rate = `${inGroups(ids)} ids, ${inGroups((ids / elapsedMs) * 1_000)}/s`;
  if (bytesTotal === undefined || bytes === 0) return rate;
  // The last line may lack its line break, which was counted.
  const share = Math.min(bytes / bytesTotal, 1);
  const leftS = Math.ceil((elapsedMs / share - elapsedMs) / 1_000);
  return `${rate}, ${Math.floor(share * 100)} %, ${inGroups(leftS)} s left`;
}

// A shared formatter would be created at the start of every command, which takes as long as loading half of its
// modules.
function inGroups(number: number): string {
  return number.toLocaleString("en-US", { maximumFractionDigits: 0 });
}
