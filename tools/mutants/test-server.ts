import { join, relative } from "node:path";
import { BaseSequencer, createVitest, type TestCase, type TestModule, type TestSpecification } from "vitest/node";
import { suitesForMutants } from "../../test/suites/select-suites.ts";

// Runs tests for mutation testing in the folder where it is started, one mutant after another. Loading vitest and
// transforming all sources for each mutant would take three times as long as most tests do.
//
// `node test-server.ts` stops at the first failure. With `--all`, the program runs all tests, repeats failures up to
// twice, and records which source blocks each test enters.

/** The tests to run, one file after the other. */
export interface TestRequest {
  /** The ids of each file's tests. An empty list selects all tests. */
  readonly tests: Readonly<Record<string, readonly string[]>>;
  /** The files that were written since the last request. */
  readonly changed: readonly string[];
}

/** A test run's result. */
export interface TestResult {
  /** The first test that failed, or another error, or `undefined` if all tests passed. */
  readonly failure: string | undefined;
  readonly files: readonly PassedFile[];
}

/** A test file that has run. */
export interface PassedFile {
  readonly file: string;
  readonly id: string;
  /** Seconds for loading the file and for the setup that its tests share. */
  readonly seconds: number;
  readonly passed: readonly { readonly id: string; readonly name: string; readonly seconds: number }[];
}

/** Runs files in the requested order. Vitest would start with the slowest file. */
class RequestedOrderSequencer extends BaseSequencer {
  override sort(specifications: TestSpecification[]): Promise<TestSpecification[]> {
    return Promise.resolve(specifications);
  }
}

const all = process.argv.includes("--all");
const vitest = await createVitest(
  "test",
  {
    watch: false,
    project: suitesForMutants().map(({ name }) => name),
    reporters: [{ onTestCaseResult: stopAtFailure }],
    // Failures are repeated, because a test may time out on a busy machine.
    retry: all ? 2 : 0,
    maxWorkers: 1,
    sequence: { sequencer: RequestedOrderSequencer },
  },
  // Files are isolated, because blocks that run when a source is loaded are otherwise recorded only in the first file
  // that loads it.
  all ? { test: { isolate: true, setupFiles: [join(import.meta.dirname, "record-coverage.ts")] } } : {},
);
await vitest.standalone();

process.on("message", (request: TestRequest) => void runTests(request).then((result) => process.send?.(result)));
process.once("disconnect", () => process.exit());
process.send?.("ready");

/**
 * Whether the current run has been stopped. Vitest's own `bail` stops once for each failure, and so may stop the next
 * run.
 */
let isStopped = false;

function stopAtFailure(test: TestCase): void {
  if (all || isStopped || test.result().state !== "failed") return;
  isStopped = true;
  void vitest.cancelCurrentRun("test-failure");
}

async function runTests({ tests, changed }: TestRequest): Promise<TestResult> {
  for (const file of changed) vitest.invalidateFile(join(process.cwd(), file));
  isStopped = false;
  // Vitest remembers earlier failures, and would stop before the first test.
  vitest.state.filesMap.clear();
  vitest.state.idMap.clear();
  const files = Object.keys(tests);
  // A file that a suite repeats runs once.
  const found = new Map((await vitest.globTestSpecifications(files)).map((one) => [one.moduleId, one]));
  const indexOf = ({ moduleId }: TestSpecification): number => files.indexOf(relative(process.cwd(), moduleId));
  const specifications = [...found.values()]
    .toSorted((a, b) => indexOf(a) - indexOf(b))
    .map(({ project, moduleId }) => {
      const testIds = [...(tests[relative(process.cwd(), moduleId)] ?? [])];
      return project.createSpecification(moduleId, testIds.length === 0 ? undefined : { testIds });
    });
  const { testModules, unhandledErrors } = await vitest.runTestSpecifications(specifications);
  const failed = testModules.filter(hasFailed);
  // With retries, a failed first attempt may leave an unhandled error although the next attempt passes.
  const unhandled = unhandledErrors.length > 0 && !all ? "an error outside of every test" : undefined;
  return { failure: failed[0] ? failureOf(failed[0]) : unhandled, files: testModules.map(passedFile) };
}

// A module whose run was stopped by a failure stays pending forever.
function hasFailed(module: TestModule): boolean {
  return module.state() === "failed" || module.children.allTests("failed").next().done !== true;
}

function failureOf(module: TestModule): string {
  const [test] = module.children.allTests("failed");
  return `${module.relativeModuleId}: ${test?.fullName ?? "cannot be loaded"}`;
}

function passedFile(module: TestModule): PassedFile {
  const tests = [...module.children.allTests("passed")];
  const passed = tests.map((test) => {
    const { id, name } = test;
    return { id, name, seconds: (test.diagnostic()?.duration ?? 0) / 1000 };
  });
  const { collectDuration, setupDuration, duration } = module.diagnostic();
  const total = (collectDuration + setupDuration + duration) / 1000;
  return {
    file: module.relativeModuleId,
    id: module.id,
    seconds: passed.reduce((remaining, { seconds }) => Math.max(0, remaining - seconds), total),
    passed,
  };
}
