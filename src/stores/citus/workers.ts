import { StoreOpenError } from "../contract/store-open-error.ts";
import type { StoreSchema } from "../postgres/schema/store-schema.ts";
import type { Notice } from "../postgres/server/connect.ts";
import { InDoubtError, type Session, type Workers } from "../postgres/server/session.ts";
import { sqlStateOf } from "../postgres/server/sql-state.ts";
import { deleteFunction } from "./delete-function.ts";
import { incompleteDistribution, isCitus, refuseDistributedSchema } from "./distribute.ts";
import { Shards } from "./shards.ts";

// An untranslated substring of the collation warning that each new connection to a worker gets after a C library
// upgrade. The warning is ignored, because it would put every deletion and every retry in doubt.
const collationHint = "REFRESH COLLATION VERSION";

// Maximum number of stored process ids, about as many as a server has connections. The oldest ids are removed first.
const stuckMax = 100;

/** The Citus workers, if the tables are distributed. All sessions of a store share this object. */
export class CitusWorkers implements Workers {
  // In some transactions, Citus forwards a worker's warning as a debug message. Without Citus, the setting is unused.
  readonly settings: ReadonlyMap<string, string> = new Map([["citus.worker_min_messages", "debug1"]]);
  areUsed = false;
  /** The server process ids that may still wait for a worker. */
  #stuckProcesses: readonly number[] = [];

  /**
   * Finds the shards of the tables. Returns `undefined` if the tables are not distributed.
   *
   * @throws StoreOpenError if `migrate` did not distribute the tables, or the session would not get workers' warnings
   */
  async findShards(session: Session, schema: StoreSchema): Promise<Shards | undefined> {
    const values = [schema.plants, `${schema.quoted}.${deleteFunction}`];
    const rows = (await isCitus(session)) ? await session.query(shardsSql, values) : [];
    if (rows.some(([, , canDelete]) => canDelete === "f")) throw new StoreOpenError(incompleteDistribution);
    if (rows.some(([, , , showsAll]) => showsAll === "f")) throw new StoreOpenError(warningsHidden);
    this.areUsed = rows.length > 0;
    if (rows.length === 0) {
      await refuseDistributedSchema(session, schema);
      return undefined;
    }
    return new Shards(
      rows.map(([max]) => Number(max)),
      rows.map(([, index]) => Number(index)),
    );
  }

  // Citus forwards a worker warning's SQLSTATE and text, but not its routine. So any warning may mean that a wait for
  // standbys was cancelled. `57P01` means that the waiting backend was terminated. If a worker does not commit a
  // prepared transaction, Citus sends only a warning. A coordinator that does not know about its replacement rolls back
  // the prepared transactions of the new coordinator.
  doubtOf({ routine, code = "", message = "" }: Notice): string | undefined {
    if (routine === "FinishRemoteTransactionCommit") return "a worker did not confirm its part of a commit";
    const isWarning = routine === "DefaultCitusNoticeReceiver" && (code.startsWith("01") || code === "57P01");
    if (!isWarning || message.includes(collationHint)) return undefined;
    return "a worker sent a warning, possibly that its synchronous standbys have not confirmed a commit";
  }

  addPossibleWait(processId: number | null): void {
    if (processId !== null && this.areUsed)
      this.#stuckProcesses = [...this.#stuckProcesses, processId].slice(-stuckMax);
  }

  // A client cannot cancel a statement while Citus is committing on workers. If nothing cancelled the waits on the
  // workers, each statement would occupy its connections until the standbys are back.
  async cancelWaits(session: Session): Promise<void> {
    const stuckProcesses = this.#stuckProcesses;
    if (stuckProcesses.length === 0) return;
    const ownProcess = session.processId;
    // Clears the list first, so that no other session cancels the same waits concurrently.
    this.#stuckProcesses = [];
    try {
      const remaining = await session.query(cancelWaitsSql, [`{${stuckProcesses.join()}}`]);
      // Keeps the processes that still exist, because the processes may wait again.
      this.#stuckProcesses = [...remaining.map(([process]) => Number(process)), ...this.#stuckProcesses];
    } catch (fault) {
      // The worker has run the statement, and sent a warning. The wait may already have ended.
      if (fault instanceof InDoubtError)
        return void (this.#stuckProcesses = [...stuckProcesses, ...this.#stuckProcesses]);
      // Other errors are not retried, because an unavailable worker would delay every new connection.
      this.#stuckProcesses = this.#stuckProcesses.filter((process) => process !== ownProcess);
      if (sqlStateOf(fault) === undefined) session.discard();
    }
  }
}

// A table on a single node has a shard without hashes, and is used like a table on a server without Citus.
const shardsSql = `
  SELECT shardmaxvalue, pg_catalog.dense_rank() OVER (ORDER BY groupid) - 1,
    pg_catalog.to_regprocedure($2) IS NOT NULL,
    pg_catalog.current_setting('client_min_messages') LIKE 'debug%'
      AND pg_catalog.current_setting('citus.worker_min_messages') LIKE 'debug%'
  FROM pg_catalog.pg_dist_shard JOIN pg_catalog.pg_dist_placement USING (shardid)
  WHERE logicalrelid = pg_catalog.to_regclass($1) AND shardmaxvalue IS NOT NULL ORDER BY shardmaxvalue::integer`;

const warningsHidden =
  "set client_min_messages and citus.worker_min_messages to debug1 for the role, because a connection pooler drops the " +
  "values that the connection sets; otherwise a commit missing on the standbys of a worker would go unnoticed";

// A server process connects to workers with an application name that contains the process id. The server may have given
// the id to a new process, so the statement cancels only processes with this session's application name. Plant stores
// look up the outcome of a cancelled wait. The commands `import` and `migrate` can be run again.
const cancelWaitsSql = `
  SELECT DISTINCT pid FROM pg_catalog.pg_stat_activity CROSS JOIN LATERAL
    pg_catalog.run_command_on_workers(pg_catalog.format(
      $$ SELECT pg_catalog.pg_cancel_backend(pid) FROM pg_catalog.pg_stat_activity
         WHERE wait_event = 'SyncRep' AND application_name = 'citus_internal gpid=%s' $$,
      pg_catalog.citus_calculate_gpid(
        pg_catalog.citus_nodeid_for_gpid(pg_catalog.citus_backend_gpid()), pid)))
  WHERE pid = ANY($1::integer[]) AND application_name = pg_catalog.current_setting('application_name')`;
