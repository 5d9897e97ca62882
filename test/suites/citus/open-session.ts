import { TableLocation } from "../../../src/stores/postgres/table-location.ts";
import type { Placement } from "../../../src/stores/postgres/delete/placement.ts";
import type { SessionTimeouts } from "../../../src/stores/postgres/server/connect.ts";
import { readServerUrl } from "../../../src/stores/postgres/server/server-url.ts";
import { Session } from "../../../src/stores/postgres/server/session.ts";

/** Opens a session with a Citus server, and the placement for its tables. */
export async function openCitusSession(
  url: string,
  timeouts?: SessionTimeouts,
): Promise<{ readonly session: Session; readonly location: TableLocation; readonly placement: Placement }> {
  const location = new TableLocation();
  const session = new Session(readServerUrl(url), timeouts, location.workers);
  await location.refresh(session);
  return { session, location, placement: location.placement };
}
