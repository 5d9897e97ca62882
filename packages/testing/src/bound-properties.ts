import {
  configureGlobal,
  defaultReportMessage,
  installGlobalPlugin,
  type Plugin,
  PreconditionFailure,
} from "fast-check";
import { type RunnerTestCase, TestRunner } from "vitest";
import { waitLimitMs } from "./deadline.ts";
import { isNightly, testSeed } from "./test-seed.ts";

// Set up before each test file. A property tries as many inputs as there is time for: a busy machine tries fewer of them,
// and fails none. It ends between two inputs only, never within one: an input that hangs is a failure.

/** How long one input may take, in ms: less than any wait for its answer, so that it is named, and tried smaller. */
const inputLimitMs = waitLimitMs / 2;

/** The share of its inputs that a property tries at least, or fails: those of a night are twenty times as many. */
const shareMin = isNightly ? 1 / 200 : 1 / 10;

/** How many inputs the properties of a test have tried, and were to try. */
export interface TriedInputs {
  readonly tried: number;
  readonly wanted: number;
}

declare global {
  var areInputsBounded: true | undefined;
}

declare module "vitest" {
  interface TaskMeta {
    inputs?: TriedInputs[];
  }
}

const endInTime: Plugin<unknown> = () => {
  const end = performance.now() + waitLimitMs;
  return { decorateRun: (run) => (value) => (performance.now() < end ? run(value) : new PreconditionFailure(true)) };
};

// What is set up for the file before lives as long as the process.
globalThis.areInputsBounded ??= (installGlobalPlugin(endInTime), true);

configureGlobal({
  seed: testSeed,
  timeout: inputLimitMs,
  reporter: (details) => {
    const message = defaultReportMessage(details);
    if (message !== undefined) throw new Error(message, { cause: details.errorInstance });
    const wanted = details.runConfiguration.numRuns ?? details.numRuns;
    (TestRunner.getCurrentTest<RunnerTestCase>().meta.inputs ??= []).push({ tried: details.numRuns, wanted });
    if (details.numRuns < wanted * shareMin) throw new Error(`only ${details.numRuns} of ${wanted} inputs were tried`);
  },
});
