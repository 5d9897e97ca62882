import { type FileSuite, isFileSuite } from "../../packages/testing/src/suite.ts";
import { suites } from "./suites.ts";

/** Returns the patterns of the files that a suite leaves to others: those of `unit` that other suites name. */
export function exclusionsOf(suite: FileSuite): string[] {
  const others = suites.filter(isFileSuite).filter((other) => other !== suite && other.isRepeated !== true);
  // Only `unit` takes what the others leave.
  return suite.name === "unit" ? others.flatMap(({ files }) => files) : [];
}

/** Returns the suites whose tests mutation testing runs. */
export function suitesForMutants(): FileSuite[] {
  return suites.filter(isFileSuite).filter(({ isForMutants }) => isForMutants === true);
}
