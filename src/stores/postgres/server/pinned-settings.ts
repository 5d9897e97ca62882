import { sqlStateOf } from "./sql-state.ts";

// Behind a pooler, a connection keeps its previous client's settings. Roles and databases have settings, too. The
// store's guarantees must not depend on any setting. Docs/explanation/storage.md lists them all.

// A commit is acknowledged to a caller, so it must wait for the disk and for synchronous standbys. NULL resets the
// setting to its value when the connection started. If that is `remote_apply`, it is kept, because it waits for more.
const pinSynchronousCommit = `
    CASE pg_catalog.set_config('synchronous_commit', NULL, true) WHEN 'on' THEN '' WHEN 'remote_apply' THEN ''
      ELSE pg_catalog.set_config('synchronous_commit', 'on', true) END`;

// See `showWarnings` in connect.ts.
const pinClientMinMessages = `
    CASE pg_catalog.current_setting('client_min_messages') WHEN 'debug1' THEN ''
      ELSE pg_catalog.set_config('client_min_messages', 'debug1', true) END`;

// Triggers and foreign keys may protect a plant. Set only if necessary, because not every user is allowed to set it.
const pinReplicationRole = `
    CASE pg_catalog.current_setting('session_replication_role')
      WHEN 'replica' THEN pg_catalog.set_config('session_replication_role', 'origin', true) ELSE '' END`;

const otherRole = "another client has set the role";

// Row security may hide a plant from one role and show it to another. The server determines the visible rows before a
// statement runs, so the statement cannot change the role, but it can fail.
const refuseOtherRole = `
    CASE pg_catalog.current_setting('role') WHEN pg_catalog.set_config('role', NULL, true) THEN ''
      ELSE ('${otherRole} ' || pg_catalog.current_setting('role'))::bigint::pg_catalog.text END`;

const pinStatements = `${pinSynchronousCommit} || ${pinClientMinMessages} || ${pinReplicationRole} || ${refuseOtherRole}`;

/**
 * A condition that is always true, and pins the settings that its statement's commit depends on until that commit
 * (`set_config(…, true)`). The condition is for the WHERE in an UPDATE or DELETE on a single row. PostgreSQL evaluates
 * it for each row, before it changes the row. If there is no row, there is nothing to commit.
 */
export const pinnedByRow: string = `(${pinStatements}) IS NOT NULL`;

/**
 * The condition for any number of rows: PostgreSQL evaluates the uncorrelated subquery once, before it reads rows.
 * Citus does not support such a function in a statement for its workers.
 */
export const pinnedCondition: string = `(SELECT ${pinStatements}) IS NOT NULL`;

/** A condition that is always true, and fails the statement if another client has set the role. */
export const ownRole: string = `(SELECT ${refuseOtherRole}) IS NOT NULL`;

// Resets the settings that a statement cannot pin itself, because they take effect before it runs.
const resetSql = "RESET default_transaction_read_only; RESET ROLE";

/**
 * Returns whether the server may have refused a statement because of such a setting. If so, the statement did nothing.
 */
export function isRefusedBySetting(fault: unknown): boolean {
  const state = sqlStateOf(fault);
  return state === "25006" || state === "42501" || (state === "22P02" && String(fault).includes(otherRole));
}

/** The characteristics that most transactions have. */
export const readCommitted = "ISOLATION LEVEL READ COMMITTED";

/**
 * Returns the statements, for a single message, that begin a transaction with all these settings pinned. A first
 * transaction resets the settings that must be correct when the second transaction starts.
 *
 * @param characteristics - the text after `BEGIN`. Further statements may follow it
 * @param settings - further settings, by name
 */
export function beginSql(characteristics: string, settings: ReadonlyMap<string, string> = new Map()): string {
  const pins = [...settings].map(([name, value]) => `pg_catalog.set_config('${name}', '${value}', true)`);
  return `BEGIN; ${resetSql}; COMMIT; BEGIN ${characteristics}; SELECT ${pins.join(", ")} WHERE ${pinnedCondition}`;
}
