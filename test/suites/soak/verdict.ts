import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { checkHistory, type FinalTables, type History, type Outcome } from "../cluster/check-history.ts";
import type { Usage } from "./service.ts";

export interface Judgement {
  /** A sentence for each broken guarantee. */
  readonly problems: readonly string[];
  /** Lines for a person to read. */
  readonly summary: readonly string[];
}

/** Memory limit in MiB, twice the memory of a server with 64 concurrent calls (protoport/docs/how-to/proxy.md). */
const maxResidentMiB = 400;
/** Limit of open files after all callers have closed their connections. An idle server has 30 open files. */
const maxOpenFiles = 100;
/** Limit in MiB for a server's growth in the second half, which begins just after the server's start. */
const maxGrowthMiB = 150;
/** Lines that a log must not have: stack traces, also in JSON, and failures of Node itself. */
const forbidden = /^\s+at \S.*:\d+:\d+\)?$|\\n\s+at |uncaught|unhandled|ERR_HANDLER_FAILED|FATAL ERROR/im;

/** Returns a sentence for each log in a folder with a forbidden line. */
export const checkLogs = (folder: string): readonly string[] =>
  readdirSync(folder)
    .filter((name) => name.endsWith(".log"))
    .flatMap((name) => {
      const text = readFileSync(join(folder, name), "utf8");
      const line = text.split("\n").find((each) => forbidden.test(each));
      return line === undefined ? [] : [`${name} has the line ${line.slice(0, 1_000)}`];
    });

/** Judges what a server uses, before and after a time in which only calls happened. */
export function judgeUsage(name: string, before: Usage | undefined, after: Usage | undefined): Judgement {
  if (before === undefined || after === undefined) return { problems: [`${name} was not measured`], summary: [] };
  const memory = `${name} grew from ${before.residentMiB} to ${after.residentMiB} MiB of memory`;
  const files = `${name} has ${after.openFiles} open files`;
  const isLarge = after.residentMiB > maxResidentMiB || after.residentMiB - before.residentMiB > maxGrowthMiB;
  return {
    problems: [...(isLarge ? [memory] : []), ...(after.openFiles > maxOpenFiles ? [files] : [])],
    summary: [`${memory} in the second half; ${files}`],
  };
}

export function judgeCalls(history: History, tables: FinalTables): Judgement {
  const { created, calls } = history;
  const { lost, doubled, wrong } = checkHistory(history, tables);
  const countOf = (outcome: Outcome): number => calls.filter((call) => call.outcome === outcome).length;
  const outcomes = (["deleted", "not found", "refused", "unknown"] as const).map(
    (outcome) => `${countOf(outcome)} ${outcome}`,
  );
  // Only calls like these show whether a repeated call gets a false response.
  const deleters = new Set(tables.records.map(({ call }) => call));
  const hidden = calls.filter(({ name, outcome }) => outcome === "unknown" && deleters.has(name)).length;
  const isAvailable = 2 * (countOf("deleted") + countOf("not found")) >= calls.length;
  return {
    problems: [...lost, ...doubled, ...wrong, ...(isAvailable ? [] : ["less than half of the calls succeeded"])],
    summary: [
      `${calls.length} calls on ${created.size} plants: ${outcomes.join(", ")}, of which ${hidden} deleted`,
      `${lost.length} lost, ${doubled.length} doubled, ${wrong.length} wrong responses`,
    ],
  };
}
