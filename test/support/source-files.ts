import { resolve } from "node:path";
import { SourceTree } from "../../protoport/testing/src/source-tree.ts";

/** The source files of the plant store, by names such as `plantstore/service/plant-service.ts`. */
export const plantStoreTree: SourceTree = new SourceTree(
  { plantstore: resolve(import.meta.dirname, "../../src") },
  "@protoport",
);
