import { setTimeout as pause } from "node:timers/promises";
import type { Case, Need } from "./case.ts";
import { type HttpResponse, type Exchange, NoResponse } from "./response.ts";
import { judge } from "./judge.ts";

/** A case's outcome. A case on the list of known failures is `known` if it failed, and `fixed` if it passed. */
export type Outcome = "pass" | "alternative" | "fail" | "known" | "fixed" | "not run";

/** A case's result. */
export interface Result {
  readonly case: Case;
  readonly outcome: Outcome;
  /** The case's problems, each as a line. */
  readonly problems: readonly string[];
  readonly ms: number;
}

/** A run's options. */
export interface RunOptions {
  readonly exchange: Exchange;
  /** Timeout for a case, in ms, until the response has ended. */
  readonly timeoutMs: number;
  /** The features that the server lacks. Cases that need a lacking feature are not run. */
  readonly without: readonly Need[];
  /** The ids of cases that are known to fail, in which `*` matches any text. */
  readonly knownFailing: readonly string[];
  /** How long to wait until a supervisor restarts a server that has exited, in ms. The default is 5000. */
  readonly restartLimitMs?: number;
}

const defaultRestartLimitMs = 5000;

/** Interval between checks whether the server has restarted, in ms. */
const restartPauseMs = 100;

/** Runs cases one after another, so that a server crash is attributed to the right case. */
export async function* run(cases: readonly Case[], options: RunOptions): AsyncGenerator<Result> {
  const isKnown = createPattern(options.knownFailing);
  let isGone = false;
  for (const each of cases) {
    if (each.needs.some((need) => options.without.includes(need))) {
      yield { case: each, outcome: "not run", problems: [], ms: 0 };
      continue;
    }
    const began = performance.now();
    const { problems, isAlternative, lostServer } = await runOne(each, options, isGone);
    isGone = lostServer;
    const outcome = outcomeOf(problems.length > 0, isKnown(each.id), isAlternative);
    yield { case: each, outcome, problems, ms: performance.now() - began };
  }
}

function outcomeOf(hasFailed: boolean, isKnown: boolean, isAlternative: boolean): Outcome {
  if (isKnown) return hasFailed ? "known" : "fixed";
  if (hasFailed) return "fail";
  return isAlternative ? "alternative" : "pass";
}

interface Ran {
  readonly problems: readonly string[];
  readonly isAlternative: boolean;
  /** Whether the server has exited without a restart. */
  readonly lostServer: boolean;
}

async function runOne(each: Case, options: RunOptions, wasGone: boolean): Promise<Ran> {
  let response: HttpResponse;
  try {
    response = await options.exchange(each.request, options.timeoutMs);
  } catch (error) {
    if (!(error instanceof NoResponse)) throw error;
    const isRefused = error.kind === "no server";
    const problem = `the server ${isRefused ? `cannot be reached (${error.message})` : error.message}`;
    // Once a server has not restarted in time, further cases do not wait for a restart.
    const lostServer = wasGone ? isRefused : (isRefused || error.kind === "closed") && !(await isServed(options));
    const problems = lostServer && !wasGone ? [problem, "and has not accepted connections since"] : [problem];
    return { problems, isAlternative: false, lostServer };
  }
  const verdict = judge(each, response);
  if (!verdict.hasPassed) return { problems: verdict.problems, isAlternative: false, lostServer: false };
  return { problems: [], isAlternative: verdict.alternative !== undefined, lostServer: false };
}

async function isServed({ exchange, timeoutMs, restartLimitMs }: RunOptions): Promise<boolean> {
  const deadlineMs = performance.now() + (restartLimitMs ?? defaultRestartLimitMs);
  while (performance.now() < deadlineMs) {
    try {
      await exchange({ method: "GET", target: "/v1/query" }, timeoutMs);
      return true;
    } catch (error) {
      // A server that accepts a connection is running, regardless of its response.
      if (error instanceof NoResponse && error.kind !== "no server") return true;
    }
    await pause(restartPauseMs);
  }
  return false;
}

/** Returns a function that tests whether a text matches any name, in which `*` matches any text. */
export function createPattern(names: readonly string[]): (text: string) => boolean {
  const patterns = names.map((name) => new RegExp(`^${name.split("*").map(escape).join(".*")}$`));
  return (text) => patterns.some((pattern) => pattern.test(text));
}

function escape(text: string): string {
  return text.replaceAll(/[^\w-]/g, String.raw`\$&`);
}

/** Parses a list of known failures. Each line has an id, and a reason after `#`. */
export function readKnownFailing(text: string): readonly string[] {
  return text
    .split("\n")
    .map((line) => line.replace(/#.*/, "").trim())
    .filter((line) => line !== "");
}
