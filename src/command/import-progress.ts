import { statSync } from "node:fs";
import type { Terminal } from "./command.ts";

/** Milliseconds between two updates of the progress. */
const progressIntervalMs = 200;

/**
 * Returns a function that shows on a terminal how far the import of a file has come, after so many ids and bytes, now
 * and then.
 */
export function showProgress(
  file: string,
  { progress }: Pick<Terminal, "progress">,
): (ids: number, bytes: number) => void {
  if (progress === undefined) return () => undefined;
  const bytesTotal = lengthOf(file);
  const startMs = performance.now();
  let shownMs = startMs;
  return (ids, bytes) => {
    const nowMs = performance.now();
    if (nowMs - shownMs < progressIntervalMs) return;
    shownMs = nowMs;
    progress(describeProgress({ ids, bytes, bytesTotal, elapsedMs: nowMs - startMs }));
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
/** Returns a whole number with commas between its thousands. */
export function inGroups(number: number): string {
  return number.toLocaleString("en-US", { maximumFractionDigits: 0 });
}
