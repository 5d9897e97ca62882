import type { FileSuite } from "../../testing/src/suite.ts";

/** The suite of `npm test`. */
export const unitSuite: FileSuite = {
  kind: "files",
  name: "unit",
  about: "what `npm test` runs: every file outside a folder suites/",
  occasion: "test",
  isForMutants: true,
  // Each process compiles the sources again, which costs more than waiting for a few slow tests.
  workers: 6,
};

/** The suite of tests that need only `npm ci`, and take minutes. */
export const longSuite: FileSuite = {
  kind: "files",
  name: "long",
  about: "what `npm ci` suffices for, and takes too long for `npm test`: processes, PostgreSQL, random inputs, effects",
  occasion: "run",
  whySeparate: "takes minutes",
  isForMutants: true,
  workers: 4,
};
