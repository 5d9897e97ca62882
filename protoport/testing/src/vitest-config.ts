import type { TestProjectConfiguration, ViteUserConfig } from "vitest/config";
import { ClipFailures } from "./clip-failures.ts";
import { waitLimitMs } from "./deadline.ts";
import { InputCounts } from "./input-counts.ts";
import { buildLimitMs } from "./process/build-step.ts";
import { compileCache } from "./process/child-program.ts";
import { ClientLines } from "./process/client-lines.ts";
import { SlowFilesFirst } from "./slow-files-first.ts";
import { type FileSuite, filePatternsOf, isFileSuite, type Suite } from "./suite.ts";

// Tests that block their process would be ended by these.
const setupFiles = ["protoport/testing/src/end-blocked-tests.ts", "protoport/testing/src/left-behind.ts"];

// Each test of such a suite waits for npm, which waits for a registry.
const buildLimits = { testTimeout: buildLimitMs, hookTimeout: buildLimitMs };

function projectOf(suite: FileSuite): TestProjectConfiguration {
  const { name, blocks = false, hasBuildLimit = false, environment, nodeFlags } = suite;
  return {
    extends: true,
    test: {
      name,
      ...filePatternsOf(suite),
      ...(!blocks && { setupFiles }),
      ...(hasBuildLimit && buildLimits),
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
        new ClientLines(),
        new InputCounts(),
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
