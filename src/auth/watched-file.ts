import type { Stats } from "node:fs";

import type { AuthLog } from "./auth-log.ts";
import { unparsed, type Parsed } from "./parsed.ts";
import { readTextFile, statRegularFile } from "./text-file.ts";
import { digestOf } from "./token-verifier.ts";

/** What is watched, and what becomes of its text. */
export interface FileToWatch {
  readonly path: string;
  /** What the file is, for the log: "file of token hashes". */
  readonly what: string;
  readonly limitBytes: number;
  /** Takes a text that is not the one before, or says why the old one stays; returns what the log says of it. */
  take(text: string): Parsed<object> | Promise<Parsed<object>>;
  readonly log: AuthLog;
}

/** A file whose text is taken again whenever it changes. */
export interface WatchedFile {
  /** Looks now, and returns when what was found is taken or refused. */
  reload(): Promise<void>;
  close(): void;
}

/**
 * Milliseconds between two looks at the file.
 *
 * A revoked token has to stop working within a second, and a change is taken at the second look. Looking at a file costs some microseconds and
 * works where change events do not come: network volumes, and Kubernetes secrets, which are swapped by symbolic link.
 */
const pollIntervalMs = 250;

/** Milliseconds for which a file that was just written is not trusted to show its next change in its times: FAT keeps 2 s. */
const timestampGranularityMs = 2_000;

/**
 * Takes the text of a file, then goes on watching it; a first text that cannot be taken is returned as the problem.
 *
 * Later on a file that is missing, unreadable or bad changes nothing but the log, which says so once:
 * an editor's half-written file must not lock everybody out.
 */
export async function watchFile(file: FileToWatch): Promise<Parsed<WatchedFile>> {
  const first = await readTextFile(file.path, file.limitBytes);
  if (first.kind === "problems") return first;
  const taken = await file.take(first.value);
  if (taken.kind === "problems") return unparsed(...taken.problems.map((problem) => `${file.path}: ${problem}`));
  return { kind: "value", value: keepWatching(file, digestOf(first.value)) };
}

function keepWatching(file: FileToWatch, firstDigest: string): WatchedFile {
  let taken = "";
  let changing = "";
  let current = firstDigest;
  let lastProblem = "";
  let looking = Promise.resolve();
  let busy = false;

  async function look(atOnce: boolean): Promise<void> {
    const stats = await statRegularFile(file.path);
    if (stats.kind === "problems") return complain(stats.problems);
    const fingerprint = fingerprintOf(stats.value);
    // What is written in place is empty first and then half there: it is read when two looks see the same.
    const isStill = fingerprint === changing;
    changing = fingerprint;
    if (!atOnce && (fingerprint === taken || !isStill)) return;
    const text = await readTextFile(file.path, file.limitBytes);
    if (text.kind === "problems") return complain(text.problems);
    // A file that is still young may change again without its times showing it: it is read again next time.
    taken = isYoung(stats.value) ? "" : fingerprint;
    const digest = digestOf(text.value);
    if (digest === current) return recover();
    await takeText(text.value, digest);
  }

  async function takeText(text: string, digest: string): Promise<void> {
    const outcome = await file.take(text);
    if (outcome.kind === "problems") return complain(outcome.problems);
    current = digest;
    lastProblem = "";
    file.log.info({ path: file.path, ...outcome.value }, `${file.what} reloaded`);
  }

  function complain(problems: readonly string[]): void {
    const problem = problems.join("; ");
    if (problem === lastProblem) return;
    lastProblem = problem;
    file.log.warn(
      { path: file.path, problems: problems.slice(0, problemsLoggedMax) },
      `${file.what} refused, the one before stays`,
    );
  }

  function recover(): void {
    if (lastProblem !== "") file.log.info({ path: file.path }, `${file.what} is the one before again`);
    lastProblem = "";
  }

  function lookInTurn(atOnce: boolean): Promise<void> {
    looking = looking.then(() => look(atOnce)).catch((error: unknown) => complain([String(error)]));
    return looking;
  }

  const timer = setInterval(() => {
    // A file system that hangs collects one look, not one every quarter of a second.
    if (busy) return;
    busy = true;
    void lookInTurn(false).finally(() => (busy = false));
  }, pollIntervalMs);
  // A process that has nothing else to do may end.
  timer.unref();

  return { reload: () => lookInTurn(true), close: () => clearInterval(timer) };
}

/** Problems of one file that a log line names; the rest shows when these are repaired. */
const problemsLoggedMax = 20;

function fingerprintOf(stats: Stats): string {
  return `${stats.dev}:${stats.ino}:${stats.size}:${stats.mtimeMs}:${stats.ctimeMs}`;
}

function isYoung(stats: Stats): boolean {
  return Math.abs(Date.now() - Math.max(stats.mtimeMs, stats.ctimeMs)) < timestampGranularityMs;
}
