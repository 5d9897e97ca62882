import { sqlStateOf } from "./sql-state.ts";

// A pooler hands a connection from one client to the next together with what the client has set, and a role or database
// has settings, too. This file makes promises of the store independent of them; docs/explanation/storage.md lists them all.

// A commit is an acknowledgement, so it waits for the disk and for synchronous standbys. NULL stands for what the
// connection began with, without any SET: of that, `remote_apply` is kept, which waits for more.
const pinSynchronousCommit = `
    CASE pg_catalog.set_config('synchronous_commit', NULL, true) WHEN 'on' THEN '' WHEN 'remote_apply' THEN ''
      ELSE pg_catalog.set_config('synchronous_commit', 'on', true) END`;

// The warning that a commit is not on its standbys must arrive. Citus has it in debug messages in some transactions.
const pinClientMinMessages = `
    CASE pg_catalog.current_setting('client_min_messages') WHEN 'debug1' THEN ''
      ELSE pg_catalog.set_config('client_min_messages', 'debug1', true) END`;

// Triggers and foreign keys may keep a plant. Without need nothing is set, because not every user may set it.
const pinReplicationRole = `
    CASE pg_catalog.current_setting('session_replication_role')
      WHEN 'replica' THEN pg_catalog.set_config('session_replication_role', 'origin', true) ELSE '' END`;

const otherRole = "another client has set the role";

// Row security may hide a plant from one role and show it to another. Which rows a statement sees is decided before it
// runs, so it cannot set its role, but it can fail.
const refuseOtherRole = `
    CASE pg_catalog.current_setting('role') WHEN pg_catalog.set_config('role', NULL, true) THEN ''
      ELSE ('${otherRole} ' || pg_catalog.current_setting('role'))::bigint::pg_catalog.text END`;

const pins = `${pinSynchronousCommit} || ${pinClientMinMessages} || ${pinReplicationRole} || ${refuseOtherRole}`;

/**
 * A condition that always holds, and sets what the commit of its statement depends on until that commit
 * (`set_config(…, true)`), for the WHERE of an UPDATE or DELETE of a single row: PostgreSQL evaluates it for each row, before
 * it changes that. Without a row there is nothing to commit.
 */
export const pinnedByRow: string = `(${pins}) IS NOT NULL`;

/**
 * The same for any number of rows: PostgreSQL evaluates the subquery, which does not depend on rows, once before it reads
 * them. Citus takes no such function in a statement for its workers.
 */
export const pinned: string = `(SELECT ${pins}) IS NOT NULL`;

/**
 * A condition that holds where nothing has to be set, if connections begin as usual ({@link beginsAsUsualSql}). To look
 * takes the server a fifth of the time of {@link pinnedByRow}, most of which goes into functions that are not even called.
 */
export const nothingToPin: string = `(
    pg_catalog.current_setting('synchronous_commit') || pg_catalog.current_setting('client_min_messages')
    || pg_catalog.current_setting('session_replication_role') || pg_catalog.current_setting('role')
  ) = 'ondebug1originnone'`;

/** The statement that tells whether connections begin, without any SET, with commits that wait and with no other role. */
export const beginsAsUsualSql = `
  SELECT pg_catalog.set_config('synchronous_commit', NULL, true) = 'on'
    AND pg_catalog.set_config('role', NULL, true) = 'none'`;

/** A condition that always holds in a statement that commits nothing, unless its role is that of another client. */
export const ownRole: string = `(SELECT ${refuseOtherRole}) IS NOT NULL`;

// What a statement cannot set for itself, because it is decided before it runs. Who connects again has the same.
const resetSql = "RESET default_transaction_read_only; RESET row_security; RESET ROLE";

/** Whether the server may have refused a statement for the sake of such a setting: then it did nothing. */
export function isRefusedBySetting(fault: unknown): boolean {
  const state = sqlStateOf(fault);
  return state === "25006" || state === "42501" || (state === "22P02" && String(fault).includes(otherRole));
}

/** The characteristics of most transactions. */
export const readCommitted = "ISOLATION LEVEL READ COMMITTED";

/**
 * Returns the statements, for a single message, that begin a transaction in which all of these settings are as they
 * should be. The first transaction resets what the second one begins with.
 *
 * @param characteristics - as after `BEGIN`; statements may follow
 */
export function beginSql(characteristics: string): string {
  return `BEGIN; ${resetSql}; COMMIT; BEGIN ${characteristics};
    SELECT pg_catalog.set_config('citus.worker_min_messages', 'debug1', true) WHERE ${pinned}`;
}
