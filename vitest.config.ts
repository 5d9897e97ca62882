import { type TestProjectConfiguration, type ViteUserConfig } from "vitest/config";
import { compileCache } from "./test/support/process/child-program.ts";
import { ClipFailures } from "./test/support/clip-failures.ts";
import { InputCounts } from "./test/support/input-counts.ts";
import { ClientLines } from "./test/support/process/client-lines.ts";
import { waitLimitMs } from "./test/support/deadline.ts";
import { buildLimitMs } from "./test/support/process/build-step.ts";

/** Suites too slow for every `npm test`; each has a script `test:<name>` and a folder of that name. */
const longSuites = [
  "browser",
  "citus",
  "clients",
  "conformance",
  "costs",
  "crash",
  "deploy",
  "frameworks",
  "generators",
  "load",
  "openapi",
  "package",
  "prometheus",
  "proxy",
  "runtimes",
  "upgrade",
] as const;

/**
 * Suites that would make `npm test` take three times as long: those that start a PostgreSQL, those that start a process
 * for each of their rows, those of what calls other servers, and the cases that any gateway has to keep. Each has a script
 * `test:<name>`.
 */
const ownScripts = {
  postgres: ["test/plantstore/plants/postgres/**/*.test.ts", "test/plantstore/plants/plant-location.test.ts"],
  command: [
    "test/plantstore/cli/**/*.test.ts",
    "test/gateway/command/**/*.test.ts",
    "test/gateway/carriers/sockets/share-connections.test.ts",
    "test/examples/embed.test.ts",
    "test/examples/grpc-clients.test.ts",
    "test/tools/npmrc.test.ts",
  ],
  outgoing: ["client", "proxy", "rest-client", "upstreams"].map((room) => `test/gateway/${room}/**/*.test.ts`),
  transcoding: ["test/transcoding/**/*.test.ts"],
  // A minute for a recipe of CONTRIBUTING.md, in .ci/nightly.
  recipe: ["test/tools/new-rpc.test.ts"],
};

// The long suites wait for builds and installations, which block their process.
const setupFiles = ["test/support/end-blocked-tests.ts", "test/support/left-behind.ts"];

// Each of its rows waits for npm, which waits for a registry.
const installLimits = { testTimeout: buildLimitMs, hookTimeout: buildLimitMs };

function suite(
  name: string,
  include: readonly string[],
  more: {
    exclude?: string[];
    setupFiles?: string[];
    execArgv?: string[];
    testTimeout?: number;
    hookTimeout?: number;
  } = {},
): TestProjectConfiguration {
  // What a suite has installed brings tests of its own.
  const exclude = ["**/node_modules/**", ...(more.exclude ?? [])];
  return { extends: true, test: { ...more, name, include: [...include], exclude } };
}

// Where `.ci/run` wants to read how many tests passed.
const report = process.env["TEST_REPORT"];

const config: ViteUserConfig = {
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
    // Hundreds of rows start a storage thread, which would take the types out of its sources each time.
    env: compileCache,
    testTimeout: 2 * waitLimitMs,
    // Names are sentences: no value in them is cut, unless it fills a line by itself.
    taskTitleValueFormatTruncate: 120,
    setupFiles: ["test/support/bound-properties.ts"],
    // A million lines are compared for minutes, and few of them are shown.
    diff: { truncateThreshold: 5000 },
    expect: { poll: { timeout: waitLimitMs } },
    hookTimeout: 2 * waitLimitMs,
    projects: [
      suite("unit", ["test/**/*.test.ts"], {
        exclude: [...longSuites.map((name) => `test/${name}/**`), ...Object.values(ownScripts).flat()],
        setupFiles,
      }),
      // As Node 22 does: what is entered in an asynchronous context stays in it when its function has returned.
      suite("old-contexts", ["test/gateway/calls/async-context.test.ts"], {
        setupFiles,
        execArgv: ["--no-async-context-frame"],
      }),
      ...Object.entries(ownScripts).map(([name, include]) => suite(name, include, { setupFiles })),
      ...longSuites.map((name) => suite(name, [`test/${name}/**/*.test.ts`], name === "package" ? installLimits : {})),
    ],
  },
};

export default config;
