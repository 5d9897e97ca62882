import type { Session } from "./session.ts";
import { runsOf } from "./cursor.ts";

/** All ids of one moment in ascending order. The session is its own until the end. */
export async function* exportPlants(session: Session): AsyncGenerator<readonly bigint[]> {
  const runs = runsOf(session, "SELECT id FROM plants ORDER BY id");
  for await (const rows of runs) yield rows.map(([id]) => BigInt(id ?? ""));
}
