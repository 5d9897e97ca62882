import { droppedSetting } from "../server/asked-settings.ts";
import { readCommitted } from "../server/pinned-settings.ts";
import type { Session } from "../server/session.ts";
import { sqlStateOf } from "../server/sql-state.ts";

/**
 * Reads back the settings that `options` of the database URL ask for. Settings that the session overrides do not count.
 *
 * @throws StoreOpenError naming the first that did not reach the server
 */
export async function checkAskedSettings(session: Session): Promise<void> {
  const asked = session.askedSettings;
  if (asked.size === 0) return;
  await session.transact(readCommitted, async () => {
    for (const [name, value] of asked) if (!(await isInForce(session, name, value))) throw droppedSetting(name);
  });
}

/** Sets a setting for a transaction. NULL stands for what the connection began with. */
export const setSql = "SELECT pg_catalog.set_config($1, $2, true)";
const currentSql = "SELECT pg_catalog.current_setting($1, true)";
const sourceSql = "SELECT source FROM pg_catalog.pg_settings WHERE pg_catalog.lower(name) = $1";

// SQLSTATEs of a setting that the server does not know, or does not take as it is from this user at this time.
const refused = /^(?:22|42|55)/;

/**
 * Returns whether a setting has this value: now, as a pooler may set it, or when the connection began, as for the role.
 * One that can only be set by what begins a connection, such as `log_connections`, must come from there: no promise
 * depends on its value, which the server may write in another way.
 */
async function isInForce(session: Session, name: string, value: string): Promise<boolean> {
  try {
    await session.run("SAVEPOINT asked");
    const [now] = await session.query(currentSql, [name]);
    const [atFirst] = await session.query(setSql, [name, null]);
    // The server writes values in its own way: 1000 as 1s.
    const [wanted] = await session.query(setSql, [name, value]);
    return wanted?.[0] === now?.[0] || wanted?.[0] === atFirst?.[0];
  } catch (fault) {
    if (!refused.test(sqlStateOf(fault) ?? "")) throw fault;
  }
  await session.run("ROLLBACK TO SAVEPOINT asked");
  const [found] = await session.query(sourceSql, [name]);
  return found?.[0] === "client";
}
