import type { Deletion } from "../plant-database.ts";
import { runsOf } from "./cursor.ts";
import type { Session } from "./session.ts";

/** The deletion records since a moment, oldest first. The session is its own until the end. */
export async function* listDeletions(session: Session, since: Date): AsyncGenerator<readonly Deletion[]> {
  // A cursor's query takes no parameters. As a number: before year 1 and after 9999 the text of a Date is none of
  // PostgreSQL's. No record is older than 1970.
  const sinceS = Math.max(0, since.getTime()) / 1_000;
  const runs = runsOf(
    session,
    `SELECT plant_id, extract(epoch FROM deleted_at) * 1000, subject, request_id, batch
     FROM deletions WHERE deleted_at >= to_timestamp(${sinceS}) ORDER BY deleted_at, seq`,
  );
  for await (const rows of runs) {
    yield rows.map(([plantId, deletedAtMs, subject, requestId, batch]) => ({
      plantId: BigInt(plantId ?? ""),
      deletedAt: new Date(Number(deletedAtMs)),
      subject: subject ?? "",
      requestId: requestId ?? "",
      batch: batch ?? "",
    }));
  }
}
