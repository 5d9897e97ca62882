import { deleteTimeouts } from "../delete/single-server.ts";
import { checkRequestedSettings } from "../schema/check-requested-settings.ts";
import { retryTransientErrors } from "../server/retry-transient-errors.ts";
import { sqlStateOf } from "../server/sql-state.ts";
import { readServerUrl } from "../server/server-url.ts";
import { withSession } from "./plant-database.ts";

// How long a check is repeated while other transactions hold locks, in milliseconds. A migration holds locks for 0.1 s.
// A server is not ready if other transactions hold locks for ten seconds.
const busyTimeoutMs = 2_000;

// Serialization failures, deadlocks and timeouts for locks.
const isBusy = (fault: unknown): boolean => /^(?:40001|40P01|55P03|57014)$/.test(sqlStateOf(fault) ?? "");

/**
 * Checks whether a server could use a database: its schema, settings, privileges and a write. Changes no data, because
 * the write rolls back to a savepoint. The final commit waits for the disk and for synchronous standbys.
 *
 * @returns warnings for the operator
 * @throws StoreOpenError that names the server and the problem
 */
export async function checkPostgresStore(url: string): Promise<readonly string[]> {
  const server = readServerUrl(url);
  // Uses the same timeouts as a server. The session's timeouts override the URL's timeouts.
  return await withSession(server, deleteTimeouts, async (session, location) => {
    const check = async (): Promise<readonly string[]> => {
      await location.check(session);
      await checkRequestedSettings(session);
      await location.tables.checkWrite(session);
      return await location.tables.findWarnings(session);
    };
    const warnings = await retryTransientErrors(session, check, isBusy, busyTimeoutMs);
    return warnings.map((warning) => `${server.name} ${warning}`);
  });
}
