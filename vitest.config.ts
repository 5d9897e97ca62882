import { type TestProjectConfiguration, type ViteUserConfig } from "vitest/config";
import { ClientLines } from "./test/support/client-lines.ts";

/** Suites too slow for every `npm test`; each has a script `test:<name>` and a folder of that name. */
const longSuites = ["browser", "clients", "conformance", "crash", "frameworks", "openapi", "package"] as const;

function suite(name: string, include: string, exclude: readonly string[]): TestProjectConfiguration {
  return { extends: true, test: { name, include: [include], exclude: [...exclude] } };
}

// Where `.ci/run` wants to read how many tests passed.
const report = process.env["TEST_REPORT"];

const config: ViteUserConfig = {
  test: {
    reporters: [
      "default",
      new ClientLines(),
      ...(report === undefined ? [] : [["json", { outputFile: report }] satisfies [string, object]]),
    ],
    // Processes rather than threads, since a test may change the working folder. A process runs many files:
    // to load everything again for each of a hundred files takes a third of the time of them all.
    pool: "forks",
    isolate: false,
    testTimeout: 20_000,
    // A busy machine makes things late, not wrong.
    expect: { poll: { timeout: 15_000 } },
    hookTimeout: 20_000,
    projects: [
      suite(
        "unit",
        "test/**/*.test.ts",
        longSuites.map((name) => `test/${name}/**`),
      ),
      ...longSuites.map((name) => suite(name, `test/${name}/**/*.test.ts`, [])),
    ],
  },
};

export default config;
