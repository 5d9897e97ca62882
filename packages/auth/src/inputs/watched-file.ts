import { hash } from "node:crypto";
import type { Stats } from "node:fs";

import { type OptionNames, refuseUnknownOptions, required } from "@plantstore/gateway/options";
import type { OperatorLog } from "./operator-log.ts";
import { notParsed, parsed, type ParseResult } from "./parse-result.ts";
import { type FileReload, ReloadRecord } from "./reload-record.ts";
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
  /** Milliseconds after which refused texts are given to `take` again: time alone can make them right. Default 10 s. */
  readonly retryRefusedMs?: number;
  /** Milliseconds after which the same refusal is logged again. Default 10 minutes. */
  readonly repeatRefusalMs?: number;
}

const fileToWatchNames: OptionNames<FileToWatch> = {
  paths: required,
  what: required,
  limitBytes: required,
  take: required,
  log: required,
  retryRefusedMs: true,
  repeatRefusalMs: true,
};

/** A file, or several that belong together, that is read again whenever it changes. */
export interface WatchedFile {
  readonly lastReload: FileReload;
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

/** A certificate that is not valid yet is taken so much later than it could be; to parse a file takes milliseconds. */
const retryRefusedMsDefault = 10_000;

/** Often enough to be seen in the log of the hour, seldom enough not to fill it. */
const repeatRefusalMsDefault = 600_000;

/** Milliseconds after a write in which another one may leave the timestamps unchanged: those of FAT count in 2 s. */
const timestampGranularityMs = 2_000;

/**
 * Reads a file and keeps watching it; returns the problem if the first text cannot be used.
 *
 * Later on, a file that is missing, unreadable or bad only causes a log line, now and then: a half-written file must not
 * lock everybody out.
 */
export async function watchFile(file: FileToWatch): Promise<ParseResult<WatchedFile>> {
  refuseUnknownOptions(file, fileToWatchNames, "watchFile");
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
  const { retryRefusedMs = retryRefusedMsDefault, repeatRefusalMs = repeatRefusalMsDefault } = file;
  const record = new ReloadRecord({ ...file, path: nameOf(file), retryRefusedMs, repeatRefusalMs });
  let taken = "";
  let changing = "";
  let changedAtMs = -Infinity;
  let current = firstDigest;
  let looking = Promise.resolve();

  async function look(atOnce: boolean): Promise<void> {
    const stats = await allOf(file.paths.map(statRegularFile));
    if (stats.kind === "problems") return record.refuse(stats.problems);
    const fingerprint = stats.value.map(fingerprintOf).join();
    // A file that is being written is empty or incomplete at first: it is read once two checks find it the same.
    const isStill = fingerprint === changing;
    changing = fingerprint;
    if (!isStill) changedAtMs = performance.now();
    if (!atOnce && ((fingerprint === taken && !record.isRetryDue) || !isStill)) return;
    const texts = await readTexts(file);
    if (texts.kind === "problems") return record.refuse(texts.problems);
    // A file that has just changed may change again without new timestamps, so it is read again next time. Measured by
    // our own clock: a network volume may have another, and not every file system tells when a file was written.
    // No test can tell: the file systems here have finer timestamps.
    taken = performance.now() - changedAtMs < timestampGranularityMs ? "" : fingerprint;
    const digest = digestOf(texts.value);
    if (digest === current) return record.keep();
    const outcome = await file.take(...texts.value);
    if (outcome.kind === "problems") return record.refuse(outcome.problems);
    current = digest;
    record.take(outcome.value);
  }

  function lookInTurn(atOnce: boolean): Promise<void> {
    looking = looking.then(() => look(atOnce)).catch((error: unknown) => record.refuse([String(error)]));
    return looking;
  }

  // Restarted after each check, so that checks do not pile up while a file system hangs.
  const timer = setTimeout(() => void lookInTurn(false).finally(() => timer.refresh()), pollIntervalMs);
  timer.unref();

  return {
    get lastReload() {
      return record.last;
    },
    reload: () => lookInTurn(true),
    close: () => clearTimeout(timer),
  };
}

function fingerprintOf(stats: Stats): string {
  return `${stats.dev}:${stats.ino}:${stats.size}:${stats.mtimeMs}:${stats.ctimeMs}`;
}

function digestOf(texts: readonly string[]): string {
  return hash("sha256", texts.join("\0"));
}
