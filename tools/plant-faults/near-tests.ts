import { globSync, readFileSync } from "node:fs";
import { basename, dirname } from "node:path";
import { exclusionsOf, suitesForMutants } from "../../test/suites.ts";

/** Every test file of the suites in which a fault may be noticed. */
export const everyTest: readonly string[] = suitesForMutants().flatMap((suite) =>
  globSync([...suite.files], { exclude: ["**/node_modules/**", ...exclusionsOf(suite)] }),
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
