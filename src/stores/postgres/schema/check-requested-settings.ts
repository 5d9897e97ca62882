import { droppedSetting } from "../server/requested-settings.ts";
import { readCommitted } from "../server/pinned-settings.ts";
import type { Session } from "../server/session.ts";
import { sqlStateOf } from "../server/sql-state.ts";

/**
 * Checks that the settings in the database URL's `options` are in effect, except those that the session overrides.
 *
 * @throws StoreOpenError that names the first setting that did not reach the server
 */
export async function checkRequestedSettings(session: Session): Promise<void> {
  const requested = session.requestedSettings;
  if (requested.size === 0) return;
  await session.transact(readCommitted, async () => {
    for (const [name, value] of requested) if (!(await isInEffect(session, name, value))) throw droppedSetting(name);
  });
}

/** Changes a setting for a transaction. NULL resets it to its value when the connection started. */
export const setSql = "SELECT pg_catalog.set_config($1, $2, true)";
const currentSql = "SELECT pg_catalog.current_setting($1, true)";
const sourceSql = "SELECT source FROM pg_catalog.pg_settings WHERE pg_catalog.lower(name) = $1";

// The SQLSTATEs with which the server refuses a setting that is unknown, or that this user cannot set at this time.
const refusedSqlStates = /^(?:22|42|55)/;

/**
 * Returns whether a setting has this value, either now, because a pooler may set it, or when the connection started,
 * because the role may set it. A setting that can only be set at the start, such as `log_connections`, must have been
 * set by the client. Its value is not compared, because the server may format it differently and no guarantee depends
 * on it.
 */
async function isInEffect(session: Session, name: string, value: string): Promise<boolean> {
  try {
    await session.run("SAVEPOINT requested");
    const [now] = await session.query(currentSql, [name]);
    const [initial] = await session.query(setSql, [name, null]);
    // The server normalizes values: 1000 becomes 1s.
    const [normalized] = await session.query(setSql, [name, value]);
    return normalized?.[0] === now?.[0] || normalized?.[0] === initial?.[0];
  } catch (fault) {
    if (!refusedSqlStates.test(sqlStateOf(fault) ?? "")) throw fault;
  }
  await session.run("ROLLBACK TO SAVEPOINT requested");
  const [found] = await session.query(sourceSql, [name]);
  return found?.[0] === "client";
}
