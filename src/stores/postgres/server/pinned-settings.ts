// Behind a pooler, a connection keeps its previous client's settings. Roles and databases also have settings. No
// guarantee of the store may depend on these inherited settings. docs/reference/postgresql.md lists the settings that
// the store pins.

/** An unknown setting, which a statement reads to fail (42704) if row security may hide rows from its role. */
export const hiddenRows = "plantstore.row_security_may_hide_rows";

/**
 * A condition that is always true, and pins the settings that a commit depends on until the end of the transaction
 * (`set_config(…, true)`). PostgreSQL evaluates the uncorrelated subquery once, before it reads rows. Citus does not
 * support `set_config` in a statement for its workers.
 *
 * - A commit must wait for the disk and for synchronous standbys, because the store acknowledges the commit to a caller.
 *   NULL resets the setting to its value when the connection started. `remote_apply` is kept, because it is stricter.
 * - Messages must include warnings, such as that a commit is not on the standbys. Citus needs debug messages.
 * - Triggers and foreign keys may protect a plant. The replication role is set only if necessary, because not every user
 *   may set it.
 */
export const pinnedCondition = `(SELECT
    CASE pg_catalog.set_config('synchronous_commit', NULL, true) WHEN 'on' THEN '' WHEN 'remote_apply' THEN ''
      ELSE pg_catalog.set_config('synchronous_commit', 'on', true) END ||
    CASE pg_catalog.current_setting('client_min_messages')
      WHEN 'error' THEN pg_catalog.set_config('client_min_messages', 'warning', true) ELSE '' END ||
    CASE pg_catalog.current_setting('session_replication_role')
      WHEN 'replica' THEN pg_catalog.set_config('session_replication_role', 'origin', true) ELSE '' END) IS NOT NULL`;

/** The usual transaction characteristics, for {@link beginSql}. */
export const readCommitted = "ISOLATION LEVEL READ COMMITTED";

/**
 * The characteristics of a transaction with locks that others wait for, for {@link beginSql}. A client that is stopped,
 * or whose network is gone, keeps the locks for 5 seconds.
 */
export const briefTransaction: string = `${readCommitted}; SET LOCAL idle_in_transaction_session_timeout = '5s'`;

/**
 * Returns the statements that begin a transaction and pin all settings, for a single message. A first transaction
 * resets the settings that must be correct when the second transaction starts.
 *
 * @param characteristics - the text after `BEGIN`. The text may contain further statements
 */
export function beginSql(characteristics: string): string {
  const resetSql = "RESET default_transaction_read_only; RESET ROLE";
  return `BEGIN; ${resetSql}; COMMIT; BEGIN ${characteristics}; SELECT WHERE ${pinnedCondition}`;
}
