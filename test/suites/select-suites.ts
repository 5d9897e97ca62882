import { type FileSuite, isFileSuite } from "../../protoport/testing/src/suite.ts";
import { suites } from "./suites.ts";

export const suitesForMutants = (): FileSuite[] =>
  suites.filter(isFileSuite).filter(({ isForMutants }) => isForMutants === true);
