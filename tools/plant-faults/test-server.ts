import { join, relative } from "node:path";
import { BaseSequencer, createVitest, type TestModule, type TestSpecification } from "vitest/node";

// Runs tests for plant-faults in the folder where it is started, again and again: to load vitest and to transform the
// whole source anew for each fault takes three times as long as most of the tests do.
//
// `node test-server.ts` stops at the first failure; with `--all` it goes on, and runs what fails once more.

/** Which tests to run, one file after the other. */
export interface TestQuestion {
  readonly files: readonly string[];
  /** What was written since the last question. */
  readonly changed: readonly string[];
  /** How many tests of each file pass where there is no fault, as far as that is known. */
  readonly passing: Readonly<Record<string, number>>;
}

/** What a run of tests came to. */
export interface TestAnswer {
  /** The first test that failed, what else went wrong, or `undefined` when all is well. */
  readonly failure: string | undefined;
  /** Every test file that failed. */
  readonly failedFiles: readonly string[];
  /** The seconds that each test file took. */
  readonly seconds: Readonly<Record<string, number>>;
  /** How many tests of each file have passed. */
  readonly passing: Readonly<Record<string, number>>;
}

/** Runs files in the order in which they are given: vitest begins with those that take longest. */
class InOrder extends BaseSequencer {
  override sort(specifications: TestSpecification[]): Promise<TestSpecification[]> {
    return Promise.resolve(specifications);
  }
}

const all = process.argv.includes("--all");
const vitest = await createVitest("test", {
  watch: false,
  project: ["unit", "crash"],
  reporters: [{}],
  bail: all ? 0 : 1,
  // A busy machine makes things late.
  retry: all ? 2 : 0,
  maxWorkers: all ? 4 : 1,
  sequence: { sequencer: InOrder },
});
await vitest.standalone();

process.on("message", (question: TestQuestion) => void answer(question).then((found) => process.send?.(found)));
process.once("disconnect", () => process.exit());
process.send?.("ready");

/** What has stopped a run may come late, and stop the next one before its end. */
const runsMax = 5;

async function answer({ files, changed, passing }: TestQuestion): Promise<TestAnswer> {
  for (const file of changed) vitest.invalidateFile(join(process.cwd(), file));
  for (let runs = 1; ; runs++) {
    const found = await run(files);
    const isWhole = files.every((file) => (found.passing[file] ?? 0) >= (passing[file] ?? 0));
    if (found.failure !== undefined || isWhole || runs === runsMax) return found;
  }
}

async function run(files: readonly string[]): Promise<TestAnswer> {
  // It keeps what failed before, and would stop before the first test.
  vitest.state.filesMap.clear();
  vitest.state.idMap.clear();
  const found = await vitest.globTestSpecifications([...files]);
  const placeOf = ({ moduleId }: TestSpecification): number => files.indexOf(relative(process.cwd(), moduleId));
  const specifications = found.toSorted((a, b) => placeOf(a) - placeOf(b));
  const { testModules, unhandledErrors } = await vitest.runTestSpecifications(specifications);
  const failed = testModules.filter(hasFailed);
  const [unhandled] = unhandledErrors;
  const outside = unhandled === undefined ? undefined : `an error outside of every test: ${stackOf(unhandled)}`;
  const failure = failed[0] ? failureOf(failed[0]) : outside;
  return {
    failure,
    failedFiles: failed.map(({ relativeModuleId }) => relativeModuleId),
    seconds: Object.fromEntries(testModules.map((module) => [module.relativeModuleId, secondsOf(module)])),
    passing: Object.fromEntries(testModules.map((module) => [module.relativeModuleId, passingOf(module)])),
  };
}

// A module whose run was stopped by a failure is pending for ever.
function hasFailed(module: TestModule): boolean {
  return module.state() === "failed" || module.children.allTests("failed").next().done !== true;
}

function stackOf(error: unknown): string {
  return error instanceof Object && "stack" in error ? String(error.stack) : String(error);
}

function passingOf(module: TestModule): number {
  return [...module.children.allTests("passed")].length;
}

function failureOf(module: TestModule): string {
  const [test] = module.children.allTests("failed");
  return `${module.relativeModuleId}: ${test?.fullName ?? "cannot be loaded"}`;
}

function secondsOf(module: TestModule): number {
  const { collectDuration, setupDuration, duration } = module.diagnostic();
  return (collectDuration + setupDuration + duration) / 1000;
}
