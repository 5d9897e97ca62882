import { Citus } from "../../src/plantstore/plants/postgres/citus/citus.ts";
import type { Placement } from "../../src/plantstore/plants/postgres/delete/placement.ts";
import type { SessionTimeouts } from "../../src/plantstore/plants/postgres/server/connect.ts";
import { readServerUrl } from "../../src/plantstore/plants/postgres/server/server-url.ts";
import { Session } from "../../src/plantstore/plants/postgres/server/session.ts";

/** A session with a server of Citus, and where its tables are. */
export async function openCitusSession(
  url: string,
  timeouts?: SessionTimeouts,
): Promise<{ readonly session: Session; readonly citus: Citus; readonly placement: Placement }> {
  const citus = new Citus();
  const session = new Session(readServerUrl(url), timeouts, citus);
  await citus.learn(session);
  return { session, citus, placement: citus.placement };
}
