import { globSync, readFileSync } from "node:fs";
import { basename, dirname } from "node:path";

const longSuites =
  /^test\/(browser|citus|clients|conformance|costs|crash|deploy|frameworks|load|openapi|package|prometheus|runtimes)\//;
/** Every test file of `npm test`. */
export const everyTest: readonly string[] = globSync("test/**/*.test.ts").filter(
  (file) => !/node_modules/.test(file) && !longSuites.test(file),
);
const testTexts = new Map(everyTest.map((file) => [file, readFileSync(file, "utf8")]));

/** Returns the test files that are for a file of `src`: by folder, import or name, and the contract. */
export function testsNear(file: string): string[] {
  const folder = `${dirname(file).replace(/^src/, "test")}/`;
  return everyTest.filter(
    (test) =>
      test.startsWith(folder) ||
      (dirname(test) !== "test" && folder.startsWith(`${dirname(test)}/`)) ||
      testTexts.get(test)?.includes(`/${file}"`) ||
      basename(test) === `${basename(file, ".ts")}.test.ts` ||
      test.startsWith("test/contract/"),
  );
}
