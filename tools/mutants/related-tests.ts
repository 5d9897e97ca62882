import { globSync, readFileSync } from "node:fs";
import { basename, dirname } from "node:path";
import { filePatternsOf } from "../../protoport/testing/src/suite.ts";
import { suitesForMutants } from "../../test/suites/select-suites.ts";

/** All test files in the suites that mutation testing runs. */
export const allTests: readonly string[] = suitesForMutants().flatMap((suite) => {
  const { include, exclude } = filePatternsOf({ ...suite, repeats: [] });
  return globSync(include, { exclude });
});
const sources = new Map(allTests.map((file) => [file, readFileSync(file, "utf8")]));

/**
 * Returns the test files that are related to a source file by folder, import or name, and the test files for the
 * contract.
 */
export function relatedTests(file: string): string[] {
  const folder = `${dirname(file).replace(/(^|\/)src(?=\/|$)/, "$1test")}/`;
  return allTests.filter((test) => {
    // Below suites/NAME/, a test has the same folder as its source.
    const place = test.replace(/\/suites\/[^/]+\//, "/");
    return (
      place.startsWith(folder) ||
      (!/(?:^|\/)test$/.test(dirname(place)) && folder.startsWith(`${dirname(place)}/`)) ||
      sources.get(test)?.includes(`/${file.replace(/^protoport\/[^/]+\//, "")}"`) ||
      basename(test) === `${basename(file, ".ts")}.test.ts` ||
      place.startsWith("test/contract/")
    );
  });
}
