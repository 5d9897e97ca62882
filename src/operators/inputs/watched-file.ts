import { hash } from "node:crypto";
import type { Stats } from "node:fs";

import type { OperatorErrorCode } from "./error-code.ts";
import type { OperatorLog } from "./operator-log.ts";
import { notParsed, parsed, type ParseResult } from "./parse-result.ts";
import { readTextFile, statRegularFile } from "./text-file.ts";

/** Options of {@link watchFile}. */
export interface FileToWatch {
  /** The path of the file, or the paths of several that belong together, such as a certificate and its key. */
  readonly paths: readonly string[];
  /** What the file is, for the log: "file of token hashes". */
  readonly what: string;
  /** The most bytes of each file. */
  readonly limitBytes: number;
  /** Uses new texts, in the order of the paths, or returns why the old ones stay; a value becomes fields of the log line. */
  take(...texts: string[]): ParseResult<object> | Promise<ParseResult<object>>;
  readonly log: OperatorLog;
}

/** A file, or several that belong together, that is read again whenever it changes. */
export interface WatchedFile {
  /** Checks the file now, and resolves when its text has been used or refused. Never rejects. */
  reload(): Promise<void>;
  close(): void;
}

/**
 * Milliseconds between two checks of the file.
 *
 * A revoked token must stop working within a second, and a change is picked up by the second check. Polling costs a few
 * microseconds and works where change events do not: on network volumes, and for Kubernetes secrets, which are replaced
 * through symbolic links.
 */
const pollIntervalMs = 250;

/** Milliseconds after a write in which another one may leave the timestamps unchanged: those of FAT count in 2 s. */
const timestampGranularityMs = 2_000;

/**
 * Reads a file and keeps watching it; returns the problem if the first text cannot be used.
 *
 * Later on, a file that is missing, unreadable or bad only causes a log line, once: a half-written file must not lock
 * everybody out.
 */
export async function watchFile(file: FileToWatch): Promise<ParseResult<WatchedFile>> {
  const first = await readTexts(file);
  if (first.kind === "problems") return first;
  const taken = await file.take(...first.value);
  if (taken.kind === "problems") return notParsed(...taken.problems.map((problem) => `${nameOf(file)}: ${problem}`));
  return { kind: "value", value: keepWatching(file, digestOf(first.value)) };
}

function nameOf({ paths }: FileToWatch): string {
  return paths.join(", ");
}

function readTexts({ paths, limitBytes }: FileToWatch): Promise<ParseResult<readonly string[]>> {
  return allOf(paths.map((path) => readTextFile(path, limitBytes)));
}

/** Resolves to all values in their order, or to the first problem. */
async function allOf<T>(reading: readonly Promise<ParseResult<T>>[]): Promise<ParseResult<readonly T[]>> {
  const values: T[] = [];
  for (const result of await Promise.all(reading)) {
    if (result.kind === "problems") return result;
    values.push(result.value);
  }
  return parsed(values);
}

function keepWatching(file: FileToWatch, firstDigest: string): WatchedFile {
  let taken = "";
  let changing = "";
  let changedAtMs = -Infinity;
  let current = firstDigest;
  let lastProblem = "";
  let looking = Promise.resolve();

  async function look(atOnce: boolean): Promise<void> {
    const stats = await allOf(file.paths.map(statRegularFile));
    if (stats.kind === "problems") return complain(stats.problems);
    const fingerprint = stats.value.map(fingerprintOf).join();
    // A file that is being written is empty or incomplete at first: it is read once two checks find it the same.
    const isStill = fingerprint === changing;
    changing = fingerprint;
    if (!isStill) changedAtMs = performance.now();
    if (!atOnce && (fingerprint === taken || !isStill)) return;
    const texts = await readTexts(file);
    if (texts.kind === "problems") return complain(texts.problems);
    // A file that has just changed may change again without new timestamps, so it is read again next time. Measured by
    // our own clock: a network volume may have another, and not every file system tells when a file was written.
    // No test can tell: the file systems here have finer timestamps.
    taken = performance.now() - changedAtMs < timestampGranularityMs ? "" : fingerprint;
    const digest = digestOf(texts.value);
    if (digest === current) return recover();
    const outcome = await file.take(...texts.value);
    if (outcome.kind === "problems") return complain(outcome.problems);
    current = digest;
    lastProblem = "";
    file.log.info({ path: nameOf(file), ...outcome.value }, `${file.what} reloaded`);
  }

  function complain(problems: readonly string[]): void {
    const problem = problems.join("; ");
    if (problem === lastProblem) return;
    lastProblem = problem;
    const errorCode: OperatorErrorCode = "ERR_FILE_REFUSED";
    const fields = { errorCode, path: nameOf(file), problems: problems.slice(0, problemsLoggedMax) };
    file.log.warn(fields, `${file.what} refused, the one before stays`);
  }

  function recover(): void {
    if (lastProblem !== "") file.log.info({ path: nameOf(file) }, `${file.what} is the one before again`);
    lastProblem = "";
  }

  function lookInTurn(atOnce: boolean): Promise<void> {
    looking = looking.then(() => look(atOnce)).catch((error: unknown) => complain([String(error)]));
    return looking;
  }

  // Restarted after each check, so that checks do not pile up while a file system hangs.
  const timer = setTimeout(() => void lookInTurn(false).finally(() => timer.refresh()), pollIntervalMs);
  timer.unref();

  return { reload: () => lookInTurn(true), close: () => clearTimeout(timer) };
}

/** The most problems of one file that a log line names. */
const problemsLoggedMax = 20;

function fingerprintOf(stats: Stats): string {
  return `${stats.dev}:${stats.ino}:${stats.size}:${stats.mtimeMs}:${stats.ctimeMs}`;
}

function digestOf(texts: readonly string[]): string {
  return hash("sha256", texts.join("\0"));
}
