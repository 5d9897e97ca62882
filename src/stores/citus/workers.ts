import type { DistributedTables, StoreWorkers } from "../postgres/distribution.ts";
import type { StoreSchema } from "../postgres/schema/store-schema.ts";
import type { Notice } from "../postgres/server/connect.ts";
import { InDoubtError, type Session } from "../postgres/server/session.ts";
import { sqlStateOf } from "../postgres/server/sql-state.ts";
import { citusPlacement } from "./citus-placement.ts";
import { refuseDistributedSchema } from "./distribute.ts";
import { findShards } from "./shards.ts";

// A part of a warning's hint that is not translated. After a C library upgrade, each new connection to a worker starts
// with this warning. If the warning counted as a doubt, retries on new connections would stay in doubt forever.
const collationHint = "REFRESH COLLATION VERSION";

// Maximum remembered processes, about as many as a server has connections. The oldest are forgotten first.
const stuckMax = 100;

/** The Citus workers, if the tables are distributed. Shared by a store's sessions. */
export class CitusWorkers implements StoreWorkers {
  // Citus forwards a worker's warning as a debug message in some transactions. Other servers ignore the setting.
  readonly settings: ReadonlyMap<string, string> = new Map([["citus.worker_min_messages", "debug1"]]);
  /** Whether the tables are known to be distributed over the workers. */
  areUsed = false;
  /** The server process ids that may still wait for a worker. */
  #stuckProcesses: readonly number[] = [];

  async find(session: Session, schema: StoreSchema): Promise<DistributedTables | undefined> {
    const shards = await findShards(session, schema);
    this.areUsed = shards !== undefined;
    if (shards !== undefined) return { layout: shards, place: () => citusPlacement(schema, shards) };
    await refuseDistributedSchema(session, schema);
    return undefined;
  }

  // Citus forwards a worker warning's SQLSTATE and text, but not the routine. `57P01` means that the waiting backend
  // was terminated. So any worker warning may mean that a wait for standbys was cancelled.
  //
  // Citus only warns if a worker does not commit a prepared transaction. A coordinator that was replaced without
  // noticing rolls back its successor's prepared transactions, which it does not know.
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

  // A statement cannot be cancelled while Citus is committing it on workers. Without this, each would occupy its
  // connections until the standbys are back.
  async cancelWaits(session: Session): Promise<void> {
    const stuckProcesses = this.#stuckProcesses;
    if (stuckProcesses.length === 0) return;
    const ownProcess = session.processId;
    // Cleared first, so that no other session cancels the same waits concurrently.
    this.#stuckProcesses = [];
    try {
      const remaining = await session.query(cancelWaitsSql, [`{${stuckProcesses.join()}}`]);
      // The blocking processes may wait again later.
      this.#stuckProcesses = [...remaining.map(([process]) => Number(process)), ...this.#stuckProcesses];
    } catch (fault) {
      // A worker that sent a warning, perhaps because the wait was already over, has run the statement.
      if (fault instanceof InDoubtError)
        return void (this.#stuckProcesses = [...stuckProcesses, ...this.#stuckProcesses]);
      // After other errors the waits are not tried again, and neither is this statement's wait. Otherwise an
      // unavailable worker would delay every new connection.
      this.#stuckProcesses = this.#stuckProcesses.filter((process) => process !== ownProcess);
      if (sqlStateOf(fault) === undefined) session.discard();
    }
  }
}

// A server process connects to workers with an application name that contains its process id. Meanwhile another process
// may have this id, so only processes with this session's application name are cancelled. Plant stores look up a
// cancelled wait's outcome, and the commands `import` and `migrate` can be run again.
const cancelWaitsSql = `
  SELECT DISTINCT pid FROM pg_catalog.pg_stat_activity CROSS JOIN LATERAL
    pg_catalog.run_command_on_workers(pg_catalog.format(
      $$ SELECT pg_catalog.pg_cancel_backend(pid) FROM pg_catalog.pg_stat_activity
         WHERE wait_event = 'SyncRep' AND application_name = 'citus_internal gpid=%s' $$,
      pg_catalog.citus_calculate_gpid(
        pg_catalog.citus_nodeid_for_gpid(pg_catalog.citus_backend_gpid()), pid)))
  WHERE pid = ANY($1::integer[]) AND application_name = pg_catalog.current_setting('application_name')`;
