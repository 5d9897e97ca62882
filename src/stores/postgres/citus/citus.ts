import { isDeepStrictEqual } from "node:util";
import { StoreOpenError } from "../../store-open-error.ts";
import { singleServer, singleServerByDay } from "../delete/single-server.ts";
import type { Placement } from "../delete/placement.ts";
import { isByDay } from "../schema/by-day.ts";
import { findSchema, type StoreSchema } from "../schema/store-schema.ts";
import type { Notice } from "../server/connect.ts";
import { InDoubtError, type Session, type Workers } from "../server/session.ts";
import { sqlStateOf } from "../server/sql-state.ts";
import { citusPlacement } from "./citus-placement.ts";
import { deleteFunction } from "./delete-function.ts";
import { isCitus, refuseDistributedSchema, distributedByHand } from "./distribute.ts";
import { Shards } from "./shards.ts";

// The part of the hint that is the same in all languages. After an upgrade of the C library, each new connection to a
// worker starts with this warning. If it counted as a doubt, retries on new connections would stay in doubt forever.
const collationHint = "REFRESH COLLATION VERSION";

// The maximum number of remembered processes, about as many as a server has connections. The oldest are forgotten
// first.
const stuckMax = 100;

/** The schema and placement of a store, which may be on Citus. Shared by all sessions of the store. */
export class Citus implements Workers {
  #schema: StoreSchema | undefined;
  #placement: Placement | undefined;
  #shards: Shards | undefined;
  /** The ids of the server processes that may still wait for a worker. */
  #stuckProcesses: readonly number[] = [];

  /** The placement that {@link refresh} has found. */
  get placement(): Placement {
    if (this.#placement === undefined) throw new Error("the location of the tables is not known yet");
    return this.#placement;
  }

  /** Whether the tables are distributed over workers, as far as known. */
  get isDistributed(): boolean {
    return this.#placement?.isDistributed ?? false;
  }

  /**
   * Returns the schema. It is determined only once, so that a later change of the search_path does not move the store.
   */
  async schemaOn(session: Session): Promise<StoreSchema> {
    const schema = this.#schema ?? (await findSchema(session));
    return (this.#schema ??= schema);
  }

  /** Returns the placement, after {@link refresh} if it is not known yet. */
  async placementOn(session: Session): Promise<Placement> {
    if (this.#placement === undefined) await this.refresh(session);
    return this.placement;
  }

  /**
   * Reads the current placement: an operator may add workers at any time.
   *
   * @throws StoreOpenError when the tables were not distributed by `migrate`, or warnings of workers would not arrive
   */
  async refresh(session: Session): Promise<void> {
    const schema = await this.schemaOn(session);
    const rows = (await isCitus(session)) ? await session.query(shardsSql, shardsOf(schema)) : [];
    if (rows.length === 0) {
      await refuseDistributedSchema(session, schema);
      const isPartitioned = await isByDay(session, schema);
      const hasKnownLayout = this.#shards === undefined && isPartitioned === (this.#placement?.days !== undefined);
      // The statements are rebuilt if something has changed.
      if (this.#placement !== undefined && hasKnownLayout) return;
      this.#shards = undefined;
      this.#placement = isPartitioned ? singleServerByDay(schema) : singleServer(schema);
      return;
    }
    if (rows.some(([, , canDelete]) => canDelete === "f")) throw new StoreOpenError(distributedByHand);
    if (rows.some(([, , , showsAll]) => showsAll === "f")) throw new StoreOpenError(warningsHidden);
    const isPartitioned = rows.some(([, , , , one]) => one === "t");
    const hashMax = rows.map(([max]) => Number(max));
    const worker = rows.map(([, index]) => Number(index));
    // Skipped if nothing has changed, because finding an id on each worker takes a while.
    const layoutKey = [this.#shards?.hashMax, this.#shards?.worker, this.#placement?.days !== undefined];
    if (isDeepStrictEqual([hashMax, worker, isPartitioned], layoutKey)) return;
    this.#shards = new Shards(hashMax, worker);
    this.#placement = citusPlacement(schema, this.#shards, isPartitioned);
  }

  // Citus forwards SQLSTATE and text of a worker's warning, but not the routine; `57P01` means that the waiting backend
  // was terminated. So any warning of a worker may mean that a wait for standbys was cancelled.
  doubtOf({ routine, code = "", message = "" }: Notice): string | undefined {
    const isWarning = routine === "DefaultCitusNoticeReceiver" && (code.startsWith("01") || code === "57P01");
    if (!isWarning || message.includes(collationHint)) return undefined;
    return "a worker sent a warning, possibly that its synchronous standbys have not confirmed a commit";
  }

  addPossibleWait(processId: number | null): void {
    if (processId !== null && this.isDistributed)
      this.#stuckProcesses = [...this.#stuckProcesses, processId].slice(-stuckMax);
  }

  // A statement cannot be cancelled while Citus is committing it on workers. Without this, each such statement would
  // occupy a connection to the server and one to the worker until the standbys are back, or until no connections
  // remain.
  async cancelWaits(session: Session): Promise<void> {
    const stuckProcesses = this.#stuckProcesses;
    if (stuckProcesses.length === 0) return;
    const ownProcess = session.processId;
    // Cleared first, so that no other session cancels the same waits concurrently.
    this.#stuckProcesses = [];
    try {
      const remaining = await session.query(cancelWaitsSql, [`{${stuckProcesses.join()}}`]);
      // These processes may wait again later.
      this.#stuckProcesses = [...remaining.map(([process]) => Number(process)), ...this.#stuckProcesses];
    } catch (fault) {
      // A worker that sent a warning, perhaps because the wait was already over, has run the statement.
      if (fault instanceof InDoubtError)
        return void (this.#stuckProcesses = [...stuckProcesses, ...this.#stuckProcesses]);
      // After other errors the waits are not tried again, and neither is that of this statement: otherwise an
      // unavailable worker would delay every new connection.
      this.#stuckProcesses = this.#stuckProcesses.filter((process) => process !== ownProcess);
      if (sqlStateOf(fault) === undefined) session.discard();
    }
  }
}

// A table on a single node has a shard without hashes, and is used as on any other server.
const shardsSql = `
  SELECT shardmaxvalue, pg_catalog.dense_rank() OVER (ORDER BY groupid) - 1,
    pg_catalog.to_regprocedure($3) IS NOT NULL,
    pg_catalog.current_setting('client_min_messages') LIKE 'debug%'
      AND pg_catalog.current_setting('citus.worker_min_messages') LIKE 'debug%',
    EXISTS (SELECT FROM pg_catalog.pg_class WHERE oid = pg_catalog.to_regclass($2) AND relkind = 'p')
  FROM pg_catalog.pg_dist_shard JOIN pg_catalog.pg_dist_placement USING (shardid)
  WHERE logicalrelid = pg_catalog.to_regclass($1) AND shardmaxvalue IS NOT NULL ORDER BY shardmaxvalue::integer`;

function shardsOf({ quoted, plants, deletions }: StoreSchema): readonly string[] {
  return [plants, deletions, `${quoted}.${deleteFunction}`];
}

const warningsHidden =
  "set client_min_messages and citus.worker_min_messages to debug1 for the role, because a connection pooler drops the " +
  "values that the connection sets; otherwise a commit missing on the standbys of a worker would go unnoticed";

// A server process connects to workers with an application name that contains its process id. Meanwhile another process
// may have this id, or the id may be from a host that was replaced. So only processes with this session's application
// name are cancelled, because plant stores look up the outcome of a cancelled wait. The commands `import` and `migrate`
// use the same application name. If the wait of such a command is cancelled by mistake, it reports that a worker sent a
// warning, and can be run again; a migration that finds its step committed continues by itself.
const cancelWaitsSql = `
  SELECT DISTINCT pid FROM pg_catalog.pg_stat_activity CROSS JOIN LATERAL
    pg_catalog.run_command_on_workers(pg_catalog.format(
      $$ SELECT pg_catalog.pg_cancel_backend(pid) FROM pg_catalog.pg_stat_activity
         WHERE wait_event = 'SyncRep' AND application_name = 'citus_internal gpid=%s' $$,
      pg_catalog.citus_calculate_gpid(
        pg_catalog.citus_nodeid_for_gpid(pg_catalog.citus_backend_gpid()), pid)))
  WHERE pid = ANY($1::integer[]) AND application_name = pg_catalog.current_setting('application_name')`;
