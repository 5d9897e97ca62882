import { globSync, readFileSync } from "node:fs";
import { basename, dirname } from "node:path";
import { exclusionsOf, suitesForMutants } from "../../test/suites/suites.ts";

/** Every test file of the suites in which a fault may be noticed. */
export const everyTest: readonly string[] = suitesForMutants().flatMap((suite) =>
  globSync([...suite.files], { exclude: ["**/node_modules/**", ...exclusionsOf(suite)] }),
);
const testTexts = new Map(everyTest.map((file) => [file, readFileSync(file, "utf8")]));

/** Returns the test files that are for a source file: by folder, import or name, and the contract. */
export function testsNear(file: string): string[] {
  const folder = `${dirname(file).replace(/(^|\/)src(?=\/|$)/, "$1test")}/`;
  return everyTest.filter(
    (test) =>
      test.startsWith(folder) ||
      (!/(?:^|\/)test$/.test(dirname(test)) && folder.startsWith(`${dirname(test)}/`)) ||
      testTexts.get(test)?.includes(`/${file.replace(/^packages\/[^/]+\//, "")}"`) ||
      basename(test) === `${basename(file, ".ts")}.test.ts` ||
      test.startsWith("test/contract/"),
  );
}
