import type { TestProjectConfiguration, ViteUserConfig } from "vitest/config";
import { BaseSequencer, type Reporter, type TestCase, type TestSpecification } from "vitest/node";
import { waitLimitMs } from "./deadline.ts";
import { buildLimitMs } from "./process/build-step.ts";
import { compileCache } from "./process/child-program.ts";
import { filePatternsOf, type FileSuite, isFileSuite, type Suite } from "./suite.ts";

// Tests that block their process would be ended by these.
const setupFiles = ["protoport/testing/src/end-blocked-tests.ts", "protoport/testing/src/left-behind.ts"];
// Each test of such a suite waits for npm, which waits for a registry.
const buildLimits = { testTimeout: buildLimitMs, hookTimeout: buildLimitMs };

function projectOf(suite: FileSuite): TestProjectConfiguration {
  const { name, blocks = false, hasBuildLimit = false, environment, nodeFlags } = suite;
  return {
    extends: true,
    // oxfmt-ignore
    test: {
      name, ...filePatternsOf(suite), ...(!blocks && { setupFiles }), ...(hasBuildLimit && buildLimits),
      ...(environment !== undefined && { env: environment }),
      ...(nodeFlags !== undefined && { execArgv: [...nodeFlags] }),
    },
  };
}

/** Returns the configuration of vitest for suites, whose patterns are relative to the folder that contains protoport/. */
export function createVitestConfig(suites: readonly Suite[]): ViteUserConfig {
  // Where `.ci/run` reads how many tests passed.
  const report = process.env["TEST_REPORT"];
  return {
    test: {
      reporters: [
        new ClipFailures(),
        "default",
        ...(report === undefined ? [] : [["json", { outputFile: report }] satisfies [string, object]]),
      ],
      // Processes rather than threads, since a test may change the working folder. A process runs many files:
      // to load everything again for each of a hundred files takes a third of the time of them all.
      pool: "forks",
      isolate: false,
      sequence: { sequencer: SlowFilesFirst },
      // Hundreds of rows start a storage thread, which would take the types out of its sources each time.
      env: compileCache,
      testTimeout: 2 * waitLimitMs,
      // Names are sentences: no value in them is cut, unless it fills a line by itself.
      taskTitleValueFormatTruncate: 120,
      setupFiles: ["protoport/testing/src/bound-properties.ts"],
      // A million lines are compared for minutes, and few of them are shown.
      diff: { truncateThreshold: 5000 },
      expect: { poll: { timeout: waitLimitMs } },
      hookTimeout: 2 * waitLimitMs,
      projects: suites.filter(isFileSuite).map(projectOf),
    },
  };
}

/** Small files that take seconds. */
const slowFile =
  /\/(?:stores\/contract\/[a-z-]+|engine\/half-close[a-z0-9-]*|server\/session|readiness-log|check-server)\.test\.ts$/;

/**
 * Starts slow files first, because a slow file at the end of a run uses a single core. In a fresh clone, which has no
 * durations of an earlier run, vitest starts with the largest files.
 */
class SlowFilesFirst extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const rank = ({ moduleId }: TestSpecification): number => (slowFile.test(moduleId) ? 0 : 1);
    // oxlint-disable-next-line unicorn/no-array-sort -- a method of the sequencer, not of an array
    const sorted = await super.sort(files);
    return sorted.toSorted((a, b) => rank(a) - rank(b));
  }
}

// Failure messages are limited to one screen, because compared values may have megabytes.
const maxLines = 30;
const maxColumns = 200;

/** Truncates failure messages for the reporters after this reporter. A test hook would delay each passing test, too. */
class ClipFailures implements Reporter {
  onTestCaseResult(test: TestCase): void {
    for (const error of test.result().errors ?? []) {
      const message = clip(error.message);
      if (error.stack !== undefined) error.stack = error.stack.replace(error.message, () => message);
      error.message = message;
      if (error.diff !== undefined) error.diff = clip(error.diff);
    }
  }
}

/** Returns the first lines of a text, which may have ANSI colors. */
function clip(text: string): string {
  const lines = text.split("\n", maxLines + 1);
  const shown = lines
    .slice(0, maxLines)
    .map((line) => (line.length > maxColumns ? `${line.slice(0, maxColumns)}\x1b[39m…` : line));
  if (lines.length > maxLines) shown.push("… and more lines");
  return shown.join("\n");
}
