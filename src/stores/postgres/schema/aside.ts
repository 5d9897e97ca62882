import { asideProblemOf } from "../../contract/move-marks.ts";
import { StoreOpenError } from "../../contract/store-open-error.ts";
import type { Session } from "../server/session.ts";
import type { StoreSchema } from "./store-schema.ts";

/** Returns why a move has set the store aside, if one has. */
export async function asideProblemIn(session: Session, { versionTable }: StoreSchema): Promise<string | undefined> {
  const [marks] = await session.query(`SELECT moved_to, moved_from FROM ${versionTable}`);
  return marks && asideProblemOf({ movedTo: marks[0] ?? null, movedFrom: marks[1] ?? null });
}

/** @throws StoreOpenError if a move has set the store aside */
export async function assertNotAside(session: Session, schema: StoreSchema): Promise<void> {
  const problem = await asideProblemIn(session, schema);
  if (problem !== undefined) throw new StoreOpenError(problem);
}
