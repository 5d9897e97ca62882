import { type FileSuite, isFileSuite } from "../../protoport/testing/src/suite.ts";
import { suites } from "./suites.ts";

/** Returns the suites whose tests mutation testing runs. */
export const suitesForMutants = (): FileSuite[] =>
  suites.filter(isFileSuite).filter(({ isForMutants }) => isForMutants === true);
