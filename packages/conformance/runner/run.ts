import { setTimeout as pause } from "node:timers/promises";
import type { Case, Need } from "./case.ts";
import { type Answer, type Exchange, NoAnswer } from "./answer.ts";
import { judge } from "./judge.ts";

/** How a case ended. `known` and `fixed`: it is in the list of known failures, and failed or did not. */
export type Outcome = "pass" | "alternative" | "fail" | "known" | "fixed" | "not run";

/** What came of a case. */
export interface Result {
  readonly case: Case;
  readonly outcome: Outcome;
  /** What is wrong, a line each. */
  readonly problems: readonly string[];
  readonly ms: number;
}

/** What is run, and how long it may take. */
export interface RunOptions {
  readonly exchange: Exchange;
  /** Milliseconds to the whole answer of a case. */
  readonly timeoutMs: number;
  /** What the server lacks: the cases that need it are not run. */
  readonly without: readonly Need[];
  /** The cases that are known to fail: ids, of which `*` stands for any text. */
  readonly knownFailing: readonly string[];
  /** How long a server that ended is waited for, in ms: what watches over it may start it again. Default 5000. */
  readonly restartLimitMs?: number;
}

const defaultRestartLimitMs = 5000;

/** Pause between two looks whether it is there again, in ms. */
const restartPauseMs = 100;

/** Runs cases one after another: so what ends the server is the case that was run. */
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
  /** Whether no server is there any more. */
  readonly lostServer: boolean;
}

async function runOne(each: Case, options: RunOptions, wasGone: boolean): Promise<Ran> {
  let answer: Answer;
  try {
    answer = await options.exchange(each.request, options.timeoutMs);
  } catch (error) {
    if (!(error instanceof NoAnswer)) throw error;
    const isRefused = error.kind === "no server";
    const problem = `the server ${isRefused ? `is not there (${error.message})` : error.message}`;
    // Once it did not come back, no case waits for it again.
    const lostServer = wasGone ? isRefused : (isRefused || error.kind === "closed") && !(await isServed(options));
    const problems = lostServer && !wasGone ? [problem, "and takes no connection since"] : [problem];
    return { problems, isAlternative: false, lostServer };
  }
  const verdict = judge(each, answer);
  if (!verdict.isRight) return { problems: verdict.problems, isAlternative: false, lostServer: false };
  return { problems: [], isAlternative: verdict.alternative !== undefined, lostServer: false };
}

async function isServed({ exchange, timeoutMs, restartLimitMs }: RunOptions): Promise<boolean> {
  const until = performance.now() + (restartLimitMs ?? defaultRestartLimitMs);
  while (performance.now() < until) {
    try {
      await exchange({ method: "GET", target: "/v1/query" }, timeoutMs);
      return true;
    } catch (error) {
      // A server that takes a connection is there, whatever it then does.
      if (error instanceof NoAnswer && error.kind !== "no server") return true;
    }
    await pause(restartPauseMs);
  }
  return false;
}

/** Returns whether a text is one of `names`, in which `*` stands for any text. */
export function createPattern(names: readonly string[]): (text: string) => boolean {
  const patterns = names.map((name) => new RegExp(`^${name.split("*").map(escape).join(".*")}$`));
  return (text) => patterns.some((pattern) => pattern.test(text));
}

function escape(text: string): string {
  return text.replaceAll(/[^\w-]/g, String.raw`\$&`);
}

/** Reads a list of known failures: an id in each line; what follows `#` says why. */
export function readKnownFailing(text: string): readonly string[] {
  return text
    .split("\n")
    .map((line) => line.replace(/#.*/, "").trim())
    .filter((line) => line !== "");
}
