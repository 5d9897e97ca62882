import { statSync } from "node:fs";
import type { PlantTerminal } from "./command.ts";

/** Interval between progress updates, in milliseconds. */
const progressIntervalMs = 200;

/**
 * Returns a function that shows an import's progress on the terminal at intervals. The arguments are the numbers of
 * imported ids and bytes. The function does nothing if standard error is not a terminal.
 */
export function showProgress(
  file: string,
  { progress }: Pick<PlantTerminal, "progress">,
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

/** Returns a file's size in bytes. Returns `undefined` for "-", and for pipes and devices, which report size 0. */
export function lengthOf(file: string): number | undefined {
  const stats = file === "-" ? undefined : statSync(file);
  return stats?.isFile() === true ? stats.size : undefined;
}

/** An import's progress. */
interface ImportState {
  readonly ids: number;
  readonly bytes: number;
  /** The input's length. Undefined for an unknown length, such as a pipe's. */
  readonly bytesTotal: number | undefined;
  readonly elapsedMs: number;
}

/** Returns a line such as "1,200,000 ids, 400,000/s, 60 %, 2 s left". Without a length, returns only ids and rate. */
export function describeProgress({ ids, bytes, bytesTotal, elapsedMs }: ImportState): string {
  const rate = `${formatInteger(ids)} ids, ${formatInteger((ids / elapsedMs) * 1_000)}/s`;
  if (bytesTotal === undefined || bytes === 0) return rate;
  // Limits the share to 1, because the file may grow during the import.
  const share = Math.min(bytes / bytesTotal, 1);
  const remainingS = Math.ceil((elapsedMs / share - elapsedMs) / 1_000);
  return `${rate}, ${Math.floor(share * 100)} %, ${formatInteger(remainingS)} s left`;
}

// Uses no Intl.NumberFormat, because creating one takes as long as loading half the modules.
/** Returns an integer with commas as thousands separators. */
export function formatInteger(number: number): string {
  return number.toLocaleString("en-US", { maximumFractionDigits: 0 });
}

/** Starts a clock. Returns a function that returns the elapsed time, such as "3.2 s". */
export function startClock(): () => string {
  const startMs = performance.now();
  return () => `${((performance.now() - startMs) / 1_000).toFixed(1)} s`;
}
