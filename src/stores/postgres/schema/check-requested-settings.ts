import { droppedSetting } from "../server/requested-settings.ts";
import { readCommitted } from "../server/pinned-settings.ts";
import type { Session } from "../server/session.ts";
import { sqlStateOf } from "../server/sql-state.ts";

/** Checks that the settings in the URL's `options`, unless overridden, are in effect. @throws StoreOpenError */
export async function checkRequestedSettings(session: Session): Promise<void> {
  const requested = session.requestedSettings;
  if (requested.size === 0) return;
  await session.transact(readCommitted, async () => {
    for (const [name, value] of requested) if (!(await isInEffect(session, name, value))) throw droppedSetting(name);
  });
}

/** Changes a setting for a transaction. NULL resets the setting to its value when the connection started. */
export const setSql = "SELECT pg_catalog.set_config($1, $2, true)";
const currentSql = "SELECT pg_catalog.current_setting($1, true)";
const sourceSql = "SELECT source FROM pg_catalog.pg_settings WHERE pg_catalog.lower(name) = $1";

// SQLSTATEs of errors for an unknown setting, or for a setting that the user cannot change now.
const refusedSqlStates = /^(?:22|42|55)/;

// Returns whether a setting has this value now, for example from a pooler, or had this value when the connection
// started, for example from the role. For a setting that cannot be changed later, such as `log_connections`, only
// checks that the client has set a value, because no guarantee depends on the value.
async function isInEffect(session: Session, name: string, value: string): Promise<boolean> {
  try {
    await session.run("SAVEPOINT requested");
    // Separate statements, because a statement may evaluate its expressions in any order.
    const [now] = await session.query(currentSql, [name]);
    const [initial] = await session.query(setSql, [name, null]);
    // The server normalizes values. For example, 1000 becomes 1s.
    const [normalized] = await session.query(setSql, [name, value]);
    return normalized?.[0] === now?.[0] || normalized?.[0] === initial?.[0];
  } catch (fault) {
    if (!refusedSqlStates.test(sqlStateOf(fault) ?? "")) throw fault;
  }
  await session.run("ROLLBACK TO SAVEPOINT requested");
  const [found] = await session.query(sourceSql, [name]);
  return found?.[0] === "client";
}
