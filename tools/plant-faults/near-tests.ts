import { globSync, readFileSync } from "node:fs";
import { dirname } from "node:path";
import { roomOf } from "./planted-fault.ts";

const longSuites =
  /^test\/(browser|citus|clients|conformance|costs|crash|deploy|frameworks|load|openapi|package|prometheus|runtimes)\//;
const everyTest = globSync("test/**/*.test.ts").filter((file) => !file.includes("node_modules"));
const shortTests = everyTest.filter((file) => !longSuites.test(file));
const crashSuites = everyTest.filter((file) => file.startsWith("test/crash/"));
const testTexts = new Map(shortTests.map((file) => [file, readFileSync(file, "utf8")]));

/** Further tests to run for a room, which are neither in its folder nor in those above. */
const besides: ReadonlyMap<string, RegExp> = new Map([
  ["test/cli/", /^test\/examples\//],
  ["test/client/", /^test\/examples\//],
  ["test/gateway/calls/", /^test\/gateway\/beside\//],
  ["test/gateway/carriers/", /^test\/(?:gateway\/(?:beside|calls|fetch)\/|server\/proxied-peer\.)/],
  ["test/gateway/http1/", /^test\/gateway\/carriers\//],
  ["test/gateway/http2/", /^test\/gateway\/carriers\//],
  ["test/gateway/json/", /^test\/gateway\/rest\//],
  ["test/gateway/protocols/", /^test\/gateway\/beside\//],
  ["test/gateway/proxies/", /^test\/(?:gateway\/carriers|server)\//],
  ["test/server/", /^test\/cli\//],
  ["test/telemetry/", /^test\/server\//],
]);

/** The crash suites of files: only they notice a store that loses what it acknowledged. */
const crashSuitesOf: readonly (readonly [files: RegExp, suites: RegExp])[] = [
  [/^src\/plants\/sqlite\//, /sqlite|durability|fdatasync/],
  [/^src\/plants\/postgres\//, /postgres|pgbouncer/],
  [/^src\/plants\/[^/]+$/, /sqlite|durability|postgres/],
  [/^src\/cli\//, /workers|unread-log/],
];

/** Returns the test files to run for a file of `src`: of its folder, of the folders above, and the contract. */
export function testsNear(file: string): string[] {
  const folder = `${dirname(file).replace(/^src/, "test")}/`;
  const room = `test/${roomOf(file)}/`;
  return shortTests.filter(
    (test) =>
      test.startsWith(folder) ||
      (dirname(test) !== "test" && folder.startsWith(`${dirname(test)}/`)) ||
      (test.startsWith(room) && testTexts.get(test)?.includes(`/${file}"`)) ||
      test.startsWith("test/contract/") ||
      besides.get(room)?.test(test),
  );
}

/** Returns the crash suites to run for a file of `src`. */
export function crashSuitesFor(file: string): string[] {
  const suites = crashSuitesOf.find(([files]) => files.test(file))?.[1];
  return crashSuites.filter((test) => suites?.test(test));
}
