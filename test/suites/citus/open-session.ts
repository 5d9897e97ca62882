import type { StoreTables } from "../../../src/stores/postgres/delete/store-tables.ts";
import { readServerUrl } from "../../../src/stores/postgres/server/server-url.ts";
import { Session, type SessionTimeouts } from "../../../src/stores/postgres/server/session.ts";
import { TableLocation } from "../../../src/stores/postgres/table-location.ts";

export async function openCitusSession(
  url: string,
  timeouts?: SessionTimeouts,
): Promise<{ readonly session: Session; readonly location: TableLocation; readonly tables: StoreTables }> {
  const location = new TableLocation();
  const session = new Session(readServerUrl(url), timeouts);
  await location.refresh(session);
  return { session, location, tables: location.tables };
}
