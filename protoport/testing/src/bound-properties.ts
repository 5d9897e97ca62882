// oxfmt-ignore
import { configureGlobal, defaultReportMessage, installGlobalPlugin, type Plugin, PreconditionFailure
} from "fast-check";
import { waitLimitMs } from "./deadline.ts";
import { isNightly, testSeed } from "./test-seed.ts";

// Setup file that runs before each test file. A property stops after a time limit, so that a busy machine runs fewer
// inputs, but fails no property. A property stops only between inputs, so an input that hangs is a failure.

// Timeout for one input, in ms. Shorter than any wait for the input, so that the input is reported and shrunk.
const inputLimitMs = waitLimitMs / 2;
// Minimum share of inputs that a property must run. At night, a property has twenty times as many inputs.
const minShare = isNightly ? 1 / 200 : 1 / 10;

declare global {
  var areInputsBounded: true | undefined;
}

const endInTime: Plugin<unknown> = () => {
  const end = performance.now() + waitLimitMs;
  return { decorateRun: (run) => (value) => (performance.now() < end ? run(value) : new PreconditionFailure(true)) };
};

// The plugin is installed once per process, because a process runs many test files.
globalThis.areInputsBounded ??= (installGlobalPlugin(endInTime), true);

configureGlobal({
  seed: testSeed,
  timeout: inputLimitMs,
  // Without this option, arrays and strings have about ten elements, whatever maximum a test sets.
  defaultSizeToMaxWhenMaxSpecified: true,
  reporter: (details) => {
    const message = defaultReportMessage(details);
    if (message !== undefined) throw new Error(message, { cause: details.errorInstance });
    const wanted = details.runConfiguration.numRuns ?? details.numRuns;
    if (details.numRuns < wanted * minShare) throw new Error(`only ${details.numRuns} of ${wanted} inputs were tried`);
  },
});
