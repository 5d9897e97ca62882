import { setTimeout as sleep } from "node:timers/promises";
import { StoreOpenError } from "../../contract/store-open-error.ts";
import { verdictOn } from "../delete/fault-table.ts";
import { problemOf } from "../delete/problem.ts";
import { deleteTimeouts } from "../delete/run-batch.ts";
import { checkRequestedSettings } from "../schema/check-requested-settings.ts";
import { readServerUrl } from "../server/server-url.ts";
import { Session } from "../server/session.ts";
import { TableLocation } from "../table-location.ts";

// How long a check is repeated while other transactions hold locks, in milliseconds. A migration holds locks for a
// tenth of a second. A server is not ready if other transactions hold locks for ten seconds.
const busyTimeoutMs = 2_000;

const retryIntervalMs = 100;

/**
 * Checks whether a server could use a database: its schema, settings, privileges and a write. Changes no data: the
 * write rolls a deletion back to a savepoint and commits, which waits for the disk and for synchronous standbys.
 *
 * @returns warnings for the operator
 * @throws StoreOpenError that names the server and the problem
 */
export async function checkPostgresStore(url: string): Promise<readonly string[]> {
  const server = readServerUrl(url);
  const location = new TableLocation();
  // Uses the same timeouts as a server. The session's timeouts override the URL's timeouts.
  const session = new Session(server, deleteTimeouts, location.workers);
  try {
    return await retryWhileLocked(session, async () => {
      await location.check(session);
      await checkRequestedSettings(session);
      await location.placement.checkWrite(session);
      return (await location.placement.findWarnings(session)).map((warning) => `${server.name} ${warning}`);
    });
  } catch (fault) {
    throw new StoreOpenError(`cannot use ${server.name}: ${problemOf(fault).text}`, { cause: fault });
  } finally {
    await session.close();
  }
}

async function retryWhileLocked<Result>(session: Session, check: () => Promise<Result>): Promise<Result> {
  const endMs = performance.now() + busyTimeoutMs;
  for (;;) {
    try {
      return await check();
    } catch (fault) {
      session.discard();
      const verdict = verdictOn(fault);
      if ((verdict !== "skip" && verdict !== "retry") || performance.now() > endMs) throw fault;
    }
    await sleep(retryIntervalMs);
  }
}
