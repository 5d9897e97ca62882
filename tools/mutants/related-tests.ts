import { globSync, readFileSync } from "node:fs";
import { basename, dirname } from "node:path";
import { exclusionsOf, suitesForMutants } from "../../test/suites/select-suites.ts";

/** All test files of the suites that mutation testing runs. */
export const allTests: readonly string[] = suitesForMutants().flatMap((suite) =>
  globSync([...suite.files], { exclude: ["**/node_modules/**", ...exclusionsOf(suite)] }),
);
const sources = new Map(allTests.map((file) => [file, readFileSync(file, "utf8")]));

/** Returns the test files that are related to a source file by folder, import or name, and those of the contract. */
export function relatedTests(file: string): string[] {
  const folder = `${dirname(file).replace(/(^|\/)src(?=\/|$)/, "$1test")}/`;
  return allTests.filter(
    (test) =>
      test.startsWith(folder) ||
      (!/(?:^|\/)test$/.test(dirname(test)) && folder.startsWith(`${dirname(test)}/`)) ||
      sources.get(test)?.includes(`/${file.replace(/^packages\/[^/]+\//, "")}"`) ||
      basename(test) === `${basename(file, ".ts")}.test.ts` ||
      test.startsWith("test/contract/"),
  );
}
