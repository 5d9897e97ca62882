import { globSync, readFileSync } from "node:fs";
import { dirname } from "node:path";
import { roomOf } from "./planted-fault.ts";

const longSuites =
  /^test\/(browser|citus|clients|conformance|costs|crash|deploy|frameworks|load|openapi|package|prometheus|runtimes)\//;
const everyTest = globSync("test/**/*.test.ts").filter((file) => !/node_modules/.test(file) && !longSuites.test(file));
const testTexts = new Map(everyTest.map((file) => [file, readFileSync(file, "utf8")]));

/** Tests of rooms that have few of their own, as others enter them. */
const besides: ReadonlyMap<string, RegExp> = new Map([
  ["plantstore/cli", /^test\/examples\//],
  ["plantstore/client", /^test\/examples\//],
  ["gateway/carriers", /^test\/gateway\/(?:beside|calls|fetch)\//],
  ["gateway/http1", /^test\/gateway\/carriers\//],
  ["gateway/http2", /^test\/gateway\/carriers\//],
  ["gateway/json", /^test\/gateway\/rest\//],
  ["gateway/proxies", /^test\/(?:gateway\/carriers|plantstore\/server)\//],
  ["plantstore/server", /^test\/plantstore\/cli\//],
  ["gateway/metrics", /^test\/plantstore\/server\//],
]);

/** Returns the test files to run for a file of `src`: of its folder, of the folders above, and the contract. */
export function testsNear(file: string): string[] {
  const folder = `${dirname(file).replace(/^src/, "test")}/`;
  const room = roomOf(file);
  return everyTest.filter(
    (test) =>
      test.startsWith(folder) ||
      (dirname(test) !== "test" && folder.startsWith(`${dirname(test)}/`)) ||
      (test.startsWith(`test/${room}/`) && testTexts.get(test)?.includes(`/${file}"`)) ||
      test.startsWith("test/contract/") ||
      besides.get(room)?.test(test),
  );
}
