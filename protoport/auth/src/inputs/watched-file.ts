import { hash } from "node:crypto";
import type { Stats } from "node:fs";
import { stat } from "node:fs/promises";

import { type OptionNames, refuseUnknownOptions, required } from "@protoport/gateway/options";
import { type FileReload, type OperatorLog, ReloadRecord } from "./reload-record.ts";
import { parsed, type ParseResult, readTextFile, toProblem, withProblems } from "./text-file.ts";

/** Options for {@link watchFile}. */
export interface FileToWatch {
  /** The file's path, or the paths of several files that are reloaded together, such as a certificate and its key. */
  readonly paths: readonly string[];
  /** The file's description in the log, such as "file of token hashes". */
  readonly what: string;
  /** Maximum size of each file, in bytes. */
  readonly limitBytes: number;
  /**
   * Applies new contents, in the same order as the paths. Returns fields for the log line, or the problems with the new
   * contents. If there are problems, the previous contents stay in use.
   */
  apply(...texts: string[]): ParseResult<object> | Promise<ParseResult<object>>;
  readonly log: OperatorLog;
  /** Milliseconds after which rejected contents, such as a future certificate, are tried again. The default is 10 s. */
  readonly retryRejectedMs?: number;
  /** Milliseconds after which the same rejection is logged again. The default is 10 minutes. */
  readonly repeatRejectionMs?: number;
}

const fileToWatchNames: OptionNames<FileToWatch> = {
  paths: required,
  what: required,
  limitBytes: required,
  apply: required,
  log: required,
  retryRejectedMs: true,
  repeatRejectionMs: true,
};

/** A watched file, or a watched group of files, which is reloaded after a change. */
export interface WatchedFile {
  readonly lastReload: FileReload;
  /** Checks the file now, and resolves when its content was applied or rejected. The promise never rejects. */
  reload(): Promise<void>;
  close(): void;
}

/**
 * Milliseconds between two checks. A revoked token must stop working within a second, and a change is detected after
 * two checks. A check costs a few microseconds. Unlike change events, polling also works on network volumes and for
 * Kubernetes secrets, which are replaced through symbolic links.
 */
const pollIntervalMs = 250;

/** Default `retryRejectedMs`. Retrying is cheap, because parsing takes milliseconds. */
const retryRejectedMsDefault = 10_000;

/** Default `repeatRejectionMs`: ten minutes, so that a persistent problem is logged six times an hour. */
const repeatRejectionMsDefault = 600_000;

/** Milliseconds within which a second write may leave the timestamps unchanged. FAT timestamps have 2 s granularity. */
const timestampGranularityMs = 2_000;

/**
 * Reads a file and watches it. If the file's first content is rejected, returns the problems. Problems with later
 * contents are only logged, so that a partially written file does not lock out all callers.
 */
export async function watchFile(file: FileToWatch): Promise<ParseResult<WatchedFile>> {
  refuseUnknownOptions(file, fileToWatchNames, "watchFile");
  const first = await readTexts(file);
  if (first.kind === "problems") return first;
  const applied = await file.apply(...first.value);
  if (applied.kind === "problems")
    return withProblems(...applied.problems.map((problem) => `${pathsOf(file)}: ${problem}`));
  return { kind: "value", value: keepWatching(file, digestOfTexts(first.value)) };
}

function pathsOf({ paths }: FileToWatch): string {
  return paths.join(", ");
}

function readTexts({ paths, limitBytes }: FileToWatch): Promise<ParseResult<readonly string[]>> {
  return allOf(paths.map((path) => readTextFile(path, limitBytes)));
}

/** Resolves to all values in order, or to the first failed result. */
async function allOf<T>(reading: readonly Promise<ParseResult<T>>[]): Promise<ParseResult<readonly T[]>> {
  const values: T[] = [];
  for (const result of await Promise.all(reading)) {
    if (result.kind === "problems") return result;
    values.push(result.value);
  }
  return parsed(values);
}

function keepWatching(file: FileToWatch, firstDigest: string): WatchedFile {
  const { retryRejectedMs = retryRejectedMsDefault, repeatRejectionMs = repeatRejectionMsDefault } = file;
  const record = new ReloadRecord({ ...file, path: pathsOf(file), retryRejectedMs, repeatRejectionMs });
  let readFingerprint = "";
  let lastFingerprint = "";
  let changedAtMs = -Infinity;
  let appliedDigest = firstDigest;
  let lastCheck = Promise.resolve();

  async function check(force: boolean): Promise<void> {
    const stats = await allOf(file.paths.map(statRegularFile));
    if (stats.kind === "problems") return record.recordRejection(stats.problems);
    const fingerprint = stats.value.map((s) => `${s.dev}:${s.ino}:${s.size}:${s.mtimeMs}:${s.ctimeMs}`).join();
    // A file is read when two checks in a row see the same fingerprint, because a file being written may be incomplete.
    const isStable = fingerprint === lastFingerprint;
    lastFingerprint = fingerprint;
    if (!isStable) changedAtMs = performance.now();
    if (!force && ((fingerprint === readFingerprint && !record.isRetryDue) || !isStable)) return;
    const texts = await readTexts(file);
    if (texts.kind === "problems") return record.recordRejection(texts.problems);
    // A file that has just changed may change again without new timestamps, so the next check reads it again. The age
    // is measured with this process's clock, because a network volume's clock may differ.
    // Equivalent mutant: the file systems here have finer timestamps.
    readFingerprint = performance.now() - changedAtMs < timestampGranularityMs ? "" : fingerprint;
    const digest = digestOfTexts(texts.value);
    if (digest === appliedDigest) return record.recordUnchanged();
    const outcome = await file.apply(...texts.value);
    if (outcome.kind === "problems") return record.recordRejection(outcome.problems);
    appliedDigest = digest;
    record.recordReload(outcome.value);
  }

  function queueCheck(force: boolean): Promise<void> {
    lastCheck = lastCheck.then(() => check(force)).catch((error: unknown) => record.recordRejection([String(error)]));
    return lastCheck;
  }

  // The timer restarts after each check, so that checks do not accumulate while a file system hangs.
  let isClosed = false;
  const restartTimer = (): void => {
    // A check may finish after the close, and refresh() would start the cleared timer again.
    if (!isClosed) timer.refresh();
  };
  const timer = setTimeout(() => void queueCheck(false).finally(restartTimer), pollIntervalMs);
  timer.unref();

  return {
    get lastReload() {
      return record.last;
    },
    reload: () => queueCheck(true),
    close: () => {
      isClosed = true;
      clearTimeout(timer);
    },
  };
}

function digestOfTexts(texts: readonly string[]): string {
  return hash("sha256", texts.join("\0"));
}

/** Returns a regular file's status. Rejects pipes and devices, because reading them might never end. */
async function statRegularFile(path: string): Promise<ParseResult<Stats>> {
  try {
    const stats = await stat(path);
    return stats.isFile() ? parsed(stats) : withProblems(`${path} is not a regular file`);
  } catch (error) {
    return toProblem(error);
  }
}
