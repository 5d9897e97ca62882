import type { TableLocation } from "./table-location.ts";
import { checkDatabase, checkRights } from "./schema/check-database.ts";
import { refuseRenamedSchema } from "./schema/renamed-schema.ts";
import type { Session } from "./server/session.ts";

/**
 * Checks, without a write, that plants can be deleted in a database, and determines where its tables are.
 *
 * @throws StoreOpenError when the schema or settings of the database or the privileges of the user are wrong; other
 * errors, which may be temporary, are rethrown
 */
export async function checkStore(session: Session, location: TableLocation): Promise<void> {
  const schema = await location.schemaOn(session);
  await checkDatabase(session, schema);
  await checkRights(session, schema);
  await refuseRenamedSchema(session, schema);
  await location.refresh(session);
  await location.placement.checkWorkers(session);
}
