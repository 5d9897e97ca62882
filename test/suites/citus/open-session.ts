import { Citus } from "../../../src/stores/postgres/citus/citus.ts";
import type { Placement } from "../../../src/stores/postgres/delete/placement.ts";
import type { SessionTimeouts } from "../../../src/stores/postgres/server/connect.ts";
import { readServerUrl } from "../../../src/stores/postgres/server/server-url.ts";
import { Session } from "../../../src/stores/postgres/server/session.ts";

/** A session with a server of Citus, and the placement of its tables. */
export async function openCitusSession(
  url: string,
  timeouts?: SessionTimeouts,
): Promise<{ readonly session: Session; readonly citus: Citus; readonly placement: Placement }> {
  const citus = new Citus();
  const session = new Session(readServerUrl(url), timeouts, citus);
  await citus.refresh(session);
  return { session, citus, placement: citus.placement };
}
