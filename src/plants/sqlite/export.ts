import type { DatabaseSync } from "node:sqlite";
import { inRuns } from "../runs.ts";
import { toBigInt } from "./integer.ts";

/** All ids in ascending order. One statement sees one moment, however long it is read. */
export async function* exportPlants(db: DatabaseSync): AsyncGenerator<readonly bigint[]> {
  const ids = db.prepare("SELECT id FROM plants ORDER BY id");
  // As arrays: an object for each of millions of rows costs more than reading it.
  ids.setReturnArrays(true);
  yield* inRuns(ids.iterate(), (row) => toBigInt(row[0]));
}
