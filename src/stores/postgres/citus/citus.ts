import { isDeepStrictEqual } from "node:util";
import { StoreOpenError } from "../../store-open-error.ts";
import { oneServer, oneServerByDay } from "../delete/one-server.ts";
import type { Placement } from "../delete/placement.ts";
import { isByDay } from "../schema/by-day.ts";
import { findSchema, type StoreSchema } from "../schema/store-schema.ts";
import type { Notice } from "../server/connect.ts";
import { beginsAsUsualSql } from "../server/pinned-settings.ts";
import { InDoubt, type Session, type Workers } from "../server/session.ts";
import { sqlStateOf } from "../server/sql-state.ts";
import { citusPlacement } from "./citus-placement.ts";
import { deleteFunction } from "./delete-function.ts";
import { isCitus, refuseDistributedSchema, spreadByHand } from "./distribute.ts";
import { Shards } from "./shards.ts";

// The part of the hint that is the same in all languages. After an upgrade of the C library, each new connection to a
// worker begins with this warning, so looking on a new connection would never end the doubt.
const collationHint = "REFRESH COLLATION VERSION";

// Processes. A server has about as many connections; those that are stuck for longest are forgotten first.
const stuckMax = 100;

/** Where a store is, and what Citus may have to do with it. Shared by all sessions of the store. */
export class Citus implements Workers {
  #schema: StoreSchema | undefined;
  #placement: Placement | undefined;
  #shards: Shards | undefined;
  /** Whether connections to a server without workers begin with nothing that a deletion has to pin. */
  #beginsAsUsual = false;
  /** The processes of the server that may still wait for a worker. */
  #stuck: readonly number[] = [];

  /** The placement that {@link learn} has found last. */
  get placement(): Placement {
    if (this.#placement === undefined) throw new Error("the location of the tables is not known yet");
    return this.#placement;
  }

  /** Whether the tables are spread over workers, as far as is known. */
  get isSpread(): boolean {
    return this.#placement?.isSpread ?? false;
  }

  /** Returns the schema, which is found once: what changes where to look for it later does not move a store. */
  async schemaOn(session: Session): Promise<StoreSchema> {
    const schema = this.#schema ?? (await findSchema(session));
    return (this.#schema ??= schema);
  }

  /** Returns the placement that is known, or else learns it. */
  async placementOn(session: Session): Promise<Placement> {
    if (this.#placement === undefined) await this.learn(session);
    return this.placement;
  }

  /**
   * Reads where the tables are now: an operator may add workers at any time.
   *
   * @throws StoreOpenError when they were spread by other means than `migrate`, or the warnings of workers would not
   * arrive
   */
  async learn(session: Session): Promise<void> {
    const schema = await this.schemaOn(session);
    const rows = (await isCitus(session)) ? await session.query(shardsSql, shardsOf(schema)) : [];
    if (rows.length === 0) {
      await refuseDistributedSchema(session, schema);
      const isDivided = await isByDay(session, schema);
      const [[usual] = []] = await session.query(beginsAsUsualSql);
      const beginsAsUsual = usual === "t";
      // The statements are written again if something else is found.
      const found = [undefined, isDivided, beginsAsUsual];
      const known = [this.#shards, this.#placement?.days !== undefined, this.#beginsAsUsual];
      if (this.#placement !== undefined && isDeepStrictEqual(found, known)) return;
      this.#shards = undefined;
      this.#beginsAsUsual = beginsAsUsual;
      this.#placement = isDivided ? oneServerByDay(schema, beginsAsUsual) : oneServer(schema, beginsAsUsual);
      return;
    }
    if (rows.some(([, , canDelete]) => canDelete === "f")) throw new StoreOpenError(spreadByHand);
    if (rows.some(([, , , showsAll]) => showsAll === "f")) throw new StoreOpenError(warningsHidden);
    const divided = rows.some(([, , , , one]) => one === "t");
    const hashMax = rows.map(([max]) => Number(max));
    const worker = rows.map(([, index]) => Number(index));
    // To find a plant of each worker takes a while.
    const known = [this.#shards?.hashMax, this.#shards?.worker, this.#placement?.days !== undefined];
    if (isDeepStrictEqual([hashMax, worker, divided], known)) return;
    this.#shards = new Shards(hashMax, worker);
    this.#placement = citusPlacement(schema, this.#shards, divided);
  }

  // Citus passes SQLSTATE and text of a worker's warning on, but not the routine; `57P01` comes when the waiting backend
  // is ended. So any warning of a worker may be that of a cancelled wait for standbys.
  doubtOf({ routine, code = "", message = "" }: Notice): string | undefined {
    const isWarning = routine === "DefaultCitusNoticeReceiver" && (code.startsWith("01") || code === "57P01");
    if (!isWarning || message.includes(collationHint)) return undefined;
    return "a worker sent a warning, possibly that its synchronous standbys have not confirmed a commit";
  }

  mayWait(processId: number | null): void {
    if (processId !== null && this.isSpread) this.#stuck = [...this.#stuck, processId].slice(-stuckMax);
  }

  // While Citus commits on workers it cannot be cancelled itself. So each statement that is given up would keep a
  // connection to the server and one to the worker until the standbys are back, or nobody can connect any more.
  async endWaits(session: Session): Promise<void> {
    const stuck = this.#stuck;
    if (stuck.length === 0) return;
    const own = session.processId;
    // Meanwhile no other session does the same.
    this.#stuck = [];
    try {
      const there = await session.query(endWaitsSql, [`{${stuck.join()}}`]);
      // What follows may wait, too.
      this.#stuck = [...there.map(([process]) => Number(process)), ...this.#stuck];
    } catch (fault) {
      // A worker that has warned, maybe that a wait was over already, has done what it was asked to.
      if (fault instanceof InDoubt) return void (this.#stuck = [...stuck, ...this.#stuck]);
      // All are forgotten, also the process of this statement: a worker that is away would delay every connection.
      this.#stuck = this.#stuck.filter((process) => process !== own);
      if (sqlStateOf(fault) === undefined) session.discard();
    }
  }
}

// A table that is on one node as a whole has a shard without hashes, and is used as on any other server.
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

// In the name under which a process of the server connects to workers, Citus puts its number. A number may have gone to
// another process meanwhile, or be of a host that was replaced. So only processes with the name of this one are meant:
// plant stores look up what a wait that was ended has come to. `plantstore import` and `plantstore migrate` have that
// name as well. If the wait of one of them is ended by mistake, its operator is told that a worker warned, maybe that a
// commit is not on its standbys, and can run it again; a migration that finds its step committed goes on by itself.
const endWaitsSql = `
  SELECT DISTINCT pid FROM pg_catalog.pg_stat_activity CROSS JOIN LATERAL
    pg_catalog.run_command_on_workers(pg_catalog.format(
      $$ SELECT pg_catalog.pg_cancel_backend(pid) FROM pg_catalog.pg_stat_activity
         WHERE wait_event = 'SyncRep' AND application_name = 'citus_internal gpid=%s' $$,
      pg_catalog.citus_calculate_gpid(
        pg_catalog.citus_nodeid_for_gpid(pg_catalog.citus_backend_gpid()), pid)))
  WHERE pid = ANY($1::integer[]) AND application_name = pg_catalog.current_setting('application_name')`;
