import type { DatabaseSync, SQLOutputValue } from "node:sqlite";
import type { Deletion } from "../plant-database.ts";
import { inRuns } from "../runs.ts";
import { toBigInt } from "./integer.ts";

/** The deletion records since a moment, oldest first. */
export async function* listDeletions(db: DatabaseSync, since: Date): AsyncGenerator<readonly Deletion[]> {
  const rows = db.prepare("SELECT * FROM deletions WHERE deleted_at >= ? ORDER BY deleted_at, seq");
  yield* inRuns(rows.iterate(since.getTime()), toDeletion);
}

function toDeletion(row: Record<string, SQLOutputValue>): Deletion {
  return {
    plantId: toBigInt(row["plant_id"]),
    deletedAt: new Date(Number(row["deleted_at"])),
    subject: String(row["subject"]),
    requestId: String(row["request_id"]),
    batch: String(row["batch"]),
  };
}
