import { isDeepStrictEqual } from "node:util";
import type { DeleteCall } from "../plant-store.ts";
import { StoreOpenError } from "../store-open-error.ts";
import type { Session } from "./session.ts";

// What is different on Citus (docs.citusdata.com). Both tables are spread over its workers by the id of the plant, so
// that a plant and the records of its deletions are on the same worker.
//
// - A statement that deletes and records at once would be a two-phase commit over all workers. In a function that Citus
//   runs on the worker of its first argument it is a local transaction; so batches are made for one worker each.
// - No index can be unique across workers, so an idempotency key holds for one plant.

// The most ids that are tried to find one for each worker: enough for a worker with one of thousands of shards. A
// worker with a single hash of 2^32, such as the shard of one tenant, would take hours to find.
const searchedIdsMax = 100_000;

/** The places of the tables, if Citus has spread them. Shared by all sessions of a store. */
export class Shards {
  /** The largest hash of each shard, in ascending order. */
  #hashMax: readonly number[] = [];
  /** The index of the worker of each shard. */
  #worker: readonly number[] = [];
  #oneOfEach: readonly bigint[] = [];

  /** Whether the tables are spread. */
  get areThere(): boolean {
    return this.#hashMax.length > 0;
  }

  /**
   * Returns the index of the worker that has a plant; 0 without Citus. For some seconds after a shard was moved it is
   * wrong, which only costs time.
   */
  workerOf(id: bigint): number {
    const hash = hashOf(id);
    return this.#worker[this.#hashMax.findIndex((max) => hash <= max)] ?? 0;
  }

  /**
   * An id on each worker, whether or not there is such a plant. A worker that has very few of all ids may be left out,
   * and then is not checked.
   */
  get oneOfEach(): readonly bigint[] {
    return this.#oneOfEach;
  }

  /**
   * Reads where the tables are now: an operator may add workers at any time.
   *
   * @throws StoreOpenError when they were spread by other means than {@link distribute}, or the warnings of workers
   * would not arrive
   */
  async learn(session: Session): Promise<void> {
    const shards = (await isCitus(session)) ? await session.query(shardsSql) : [];
    if (shards.length === 0) await refuseDistributedSchema(session);
    if (shards.some(([, , canDelete]) => canDelete === "f")) throw new StoreOpenError(spreadByHand);
    if (shards.some(([, , , tellsAll]) => tellsAll === "f")) throw new StoreOpenError(hushed);
    const hashMax = shards.map(([max]) => Number(max));
    const worker = shards.map(([, index]) => Number(index));
    if (isDeepStrictEqual([hashMax, worker], [this.#hashMax, this.#worker])) return;
    this.#hashMax = hashMax;
    this.#worker = worker;
    this.#oneOfEach = this.#findOneOfEach();
  }

  #findOneOfEach(): readonly bigint[] {
    const wanted = new Set(this.#worker);
    const found: bigint[] = [];
    for (let id = 0n; wanted.size > 0 && id < searchedIdsMax; id++) {
      if (wanted.delete(this.workerOf(id))) found.push(id);
    }
    return found;
  }
}

const deleteFunction = "plantstore_delete(bigint, bigint[], text[], text[], uuid, text[], boolean)";

// A table that is on one node as a whole has a shard without hashes, and is used as on any other server.
const shardsSql = `
  SELECT shardmaxvalue, dense_rank() OVER (ORDER BY groupid) - 1, to_regprocedure('${deleteFunction}') IS NOT NULL,
    current_setting('client_min_messages') LIKE 'debug%' AND current_setting('citus.worker_min_messages') LIKE 'debug%'
  FROM pg_dist_shard JOIN pg_dist_placement USING (shardid)
  WHERE logicalrelid = to_regclass('plants') AND shardmaxvalue IS NOT NULL ORDER BY shardmaxvalue::integer`;

const spreadByHand = "its tables are distributed, but not by `plantstore migrate`: run it";
const hushed =
  "set client_min_messages and citus.worker_min_messages to debug1 for the role, because a pooler keeps them from " +
  "being set by the connection; otherwise a commit that a worker's standbys lack would go unnoticed";
const spreadOtherwise = "`plants` and `deletions` must be distributed together, by `id` and `plant_id`";

const schemaDistributed =
  "a schema that Citus keeps on one worker as a whole is not supported: use another one, " +
  "or bring it back by `SELECT citus_schema_undistribute(current_schema)`";

/**
 * Refuses a schema that Citus has on one worker as a whole. Does nothing on a server without Citus.
 *
 * @throws StoreOpenError
 */
export async function refuseDistributedSchema(session: Session): Promise<void> {
  // Other servers do not have this table, nor does Citus before 12.
  const [known] = await session.query("SELECT to_regclass('pg_dist_schema')");
  if (known?.[0] === null) return;
  const found = await session.query("SELECT FROM pg_dist_schema WHERE schemaid = current_schema()::regnamespace");
  if (found.length > 0) throw new StoreOpenError(schemaDistributed);
}

async function isCitus(session: Session): Promise<boolean> {
  return (await session.query("SELECT FROM pg_extension WHERE extname = 'citus'")).length > 0;
}

/**
 * Returns the hash of an id by which Citus chooses its shard: `hashint8` of PostgreSQL, which is the final mix of Bob
 * Jenkins' lookup3 (burtleburtle.net/bob/c/lookup3.c) over the halves of the id.
 */
export function hashOf(id: bigint): number {
  const high = Number(BigInt.asIntN(32, id >> 32n));
  const half = Number(BigInt.asIntN(32, id)) ^ (id >= 0n ? high : ~high);
  let [a, b, c] = [(hashSeed + half) | 0, hashSeed, hashSeed];
  c = ((c ^ b) - rotated(b, 14)) | 0;
  a = ((a ^ c) - rotated(c, 11)) | 0;
  b = ((b ^ a) - rotated(a, 25)) | 0;
  c = ((c ^ b) - rotated(b, 16)) | 0;
  a = ((a ^ c) - rotated(c, 4)) | 0;
  b = ((b ^ a) - rotated(a, 14)) | 0;
  return ((c ^ b) - rotated(b, 24)) | 0;
}

// PostgreSQL's seed for a key of four bytes.
const hashSeed = (0x9e3779b9 + 4 + 3_923_095) | 0;

function rotated(bits: number, by: number): number {
  return (bits << by) | (bits >>> (32 - by));
}

/**
 * Returns a call whose idempotency key begins with the plant, as in records on Citus, where keys hold for one plant.
 */
export function toCallOnCitus(call: DeleteCall, id: bigint): DeleteCall {
  return call.idempotencyKey === undefined ? call : { ...call, idempotencyKey: `${id}:${call.idempotencyKey}` };
}

// In the name under which a process of the server connects to workers, Citus puts its number. A number may have gone to
// another process meanwhile, or be of a host that was replaced. So only processes with the name of this one are meant:
// plant stores look up what a wait that was ended has come to. `plantstore import` and `plantstore migrate` have that
// name as well. If the wait of one of them is ended by mistake, its operator is told that a worker warned, maybe that a
// commit is not on its standbys, and can run it again; a migration that finds its step committed goes on by itself.
const endWaitsSql = `
  SELECT DISTINCT pid FROM pg_stat_activity CROSS JOIN LATERAL run_command_on_workers(format(
    $$ SELECT pg_cancel_backend(pid) FROM pg_stat_activity
       WHERE wait_event = 'SyncRep' AND application_name = 'citus_internal gpid=%s' $$,
    citus_calculate_gpid(citus_nodeid_for_gpid(citus_backend_gpid()), pid)))
  WHERE pid = ANY($1::integer[]) AND application_name = current_setting('application_name')`;

/**
 * Ends the waits for synchronous standbys in which processes of the server are stuck on workers, and returns those that
 * are still there: what follows may wait, too.
 *
 * While Citus commits on workers it cannot be cancelled itself. So each statement that is given up would keep a
 * connection to the server and one to the worker until the standbys are back, or nobody can connect any more.
 */
export async function endWaitsOnWorkers(session: Session, processes: readonly number[]): Promise<number[]> {
  const there = await session.query(endWaitsSql, [`{${processes.join()}}`]);
  return there.map(([process]) => Number(process));
}

/**
 * Spreads the tables of a store over the workers, together with their rows, unless they are spread already. Adds what
 * is missing to tables that an operator has spread. Does nothing on a server without Citus. Deletions wait meanwhile.
 *
 * @throws StoreOpenError when an operator has spread them in another way
 */
export async function distribute(session: Session): Promise<void> {
  if (!(await isCitus(session))) return;
  // Of several processes, all but one wait here, and must then see what the first has done.
  await session.begin("BEGIN ISOLATION LEVEL READ COMMITTED; SELECT version FROM plantstore_schema FOR UPDATE");
  for (const sql of await missingSql(session)) await session.run(sql);
  await session.commit();
}

/** Returns the statements that make the tables fit for deletions on Citus; none if they are fit already. */
async function missingSql(session: Session): Promise<readonly string[]> {
  const [[state] = []] = await session.query(stateSql, [functionBody]);
  if (state === "otherwise") throw new StoreOpenError(spreadOtherwise);
  if (state === "of another release") return [sequentialSql, functionSql];
  if (state === "by hand") return [sequentialSql, ...keysSql, spreadFunctionSql];
  return state === "whole" ? [sequentialSql, primaryKeySql, ...keysSql, spreadSql, spreadFunctionSql] : [];
}

const stateSql = `
  SELECT CASE
    WHEN plants.logicalrelid IS NULL THEN 'whole'
    WHEN plants.partmethod <> 'h' OR prosrc = $1 THEN 'done'
    WHEN prosrc IS NOT NULL THEN 'of another release'
    WHEN deletions.colocationid = plants.colocationid
      AND column_to_column_name(deletions.logicalrelid, deletions.partkey) = 'plant_id' THEN 'by hand'
    ELSE 'otherwise' END
  FROM (SELECT) AS one LEFT JOIN pg_dist_partition AS plants ON plants.logicalrelid = to_regclass('plants')
    LEFT JOIN pg_dist_partition AS deletions ON deletions.logicalrelid = to_regclass('deletions')
    LEFT JOIN pg_proc ON pg_proc.oid = to_regprocedure('${deleteFunction}')`;

const sequentialSql = "SET LOCAL citus.multi_shard_modify_mode = 'sequential';";

const primaryKeySql = "ALTER TABLE deletions DROP CONSTRAINT deletions_pkey, ADD PRIMARY KEY (plant_id, seq);";

// One by one, because Citus passes some statements to the workers with everything else in the same message.
const keysSql = [
  "DROP INDEX IF EXISTS deletions_by_plant",
  "DROP INDEX IF EXISTS deletions_by_key",
  "UPDATE deletions SET idempotency_key = plant_id::text || ':' || idempotency_key WHERE idempotency_key IS NOT NULL",
  "CREATE UNIQUE INDEX deletions_by_key ON deletions (plant_id, idempotency_key) WHERE idempotency_key IS NOT NULL",
];

const spreadSql = `
  SELECT create_distributed_table('plants', 'id');
  SELECT create_distributed_table('deletions', 'plant_id', colocate_with => 'plants');`;

// Finds out whether any of these plants is on another server than the one that runs the function. NOT IN asks for the
// shard of each plant once.
const elsewhere = (ids: string): string => `EXISTS (
        SELECT FROM unnest(${ids}) AS id WHERE get_shard_id_for_distribution_column('plants', id) NOT IN (
          SELECT shardid FROM pg_dist_placement WHERE groupid = (SELECT groupid FROM pg_dist_local_group)))`;

// Finds out whether a trigger of this server may drop records: one for each row, before, INSERT (bits 0 to 2 of
// `tgtype`).
const mayDropRecords = `EXISTS (
        SELECT FROM pg_trigger
        WHERE tgtype & 7 = 7 AND NOT tgisinternal AND tgrelid::regclass::text LIKE '%deletions\\_%'
      )`;

// The function is one transaction on one worker. Without a token it only checks that worker. With `skips` it waits
// for no lock; on Citus, SKIP LOCKED works on one shard at a time. As in the statement for other servers, "not
// found" waits for standbys. A batch that was sent to the wrong worker is a two-phase commit, in which every worker
// waits for its standbys, also for plants that it has not found; the warnings of other workers must be passed on.
// The setting for that is made last, because Citus would otherwise report on each statement, which costs time. So
// would a CTE, whose rows Citus puts into a file: ids are collected in a loop.
//
// Dropped records make the function fail, as in the statement for other servers. Citus counts the records that it sends
// to the shards, where a trigger may drop some. Counting what is there takes as long as everything else together, so it
// is done only if there is such a trigger, or if the triggers of another server would have to be known.
//
// After a change of its nodes, such as a failover, Citus runs the function on the coordinator until all nodes know the
// change. Its deletions are then committed where the plants are. For plants that it has not found, it writes records
// there and rolls them back: the commit of a transaction that has written waits for the standbys, even if nothing of
// it is left. A trigger may keep the records from being written; then the deletion is repeated until a worker runs it.
const functionBody = `
  DECLARE
    part bigint[]; free bigint[]; present bigint; recorded bigint; missing bigint[]; undone uuid;
  BEGIN
    IF current_setting('fsync') = 'off' OR current_setting('synchronous_commit') NOT IN ('on', 'remote_apply') THEN
      RAISE 'fsync is % and synchronous_commit is % on the worker %:%, so commits would not be durable',
        current_setting('fsync'), current_setting('synchronous_commit'), inet_server_addr(), inet_server_port()
        USING ERRCODE = '0A000';
    END IF;
    IF token IS NULL THEN RETURN; END IF;
    IF skips THEN
      FOR part IN
        SELECT array_agg(id) FROM unnest(ids) AS id GROUP BY get_shard_id_for_distribution_column('plants', id)
      LOOP
        free := '{}';
        FOR present IN SELECT id FROM plants WHERE id = ANY(part) FOR UPDATE SKIP LOCKED LOOP
          free := free || present;
        END LOOP;
        FOR present IN DELETE FROM plants WHERE id = ANY(free) AND id = ANY(part) RETURNING id LOOP
          deleted := deleted || present;
        END LOOP;
        FOR present IN SELECT id FROM plants WHERE id = ANY(part) LOOP
          IF present = ANY(free) THEN kept := kept || present; ELSE locked := locked || present; END IF;
        END LOOP;
      END LOOP;
    ELSE
      FOR present IN DELETE FROM plants WHERE id = ANY(ids) RETURNING id LOOP deleted := deleted || present; END LOOP;
    END IF;
    IF deleted IS NOT NULL THEN
      INSERT INTO deletions (plant_id, batch, subject, request_id, idempotency_key)
        SELECT id, token, subject, request_id, key
        FROM unnest(ids, subjects, request_ids, keys) AS call (id, subject, request_id, key) WHERE id = ANY(deleted);
      GET DIAGNOSTICS recorded = ROW_COUNT;
      IF ${mayDropRecords} OR ${elsewhere("deleted")} THEN
        SELECT count(DISTINCT plant_id) INTO recorded FROM deletions WHERE plant_id = ANY(deleted) AND batch = token;
      END IF;
      IF recorded < cardinality(deleted) THEN
        RAISE 'a trigger drops the record of a plant' USING ERRCODE = '22P02';
      END IF;
    ELSIF ${elsewhere("ARRAY[one]")} THEN
      undone := gen_random_uuid();
      missing := ARRAY(SELECT unnest(ids || one) EXCEPT SELECT unnest(locked || kept));
      BEGIN
        INSERT INTO deletions (plant_id, batch, subject, request_id)
          SELECT id, undone, '', '' FROM unnest(missing) AS id;
        SELECT count(*) INTO recorded FROM deletions WHERE plant_id = ANY(missing) AND batch = undone;
        RAISE 'to be undone';
      EXCEPTION WHEN OTHERS THEN
        IF recorded IS DISTINCT FROM cardinality(missing) THEN
          RAISE 'Citus has handed the deletion to no worker, and its standbys cannot be waited for: %', SQLERRM
            USING ERRCODE = '40001';
        END IF;
      END;
    ELSIF current_setting('synchronous_standby_names') <> '' THEN
      PERFORM pg_logical_emit_message(true, 'plantstore', '');
    END IF;
    PERFORM set_config('client_min_messages', 'debug1', true);
  END `;

const functionSql = `
  CREATE OR REPLACE FUNCTION plantstore_delete(
    one bigint, ids bigint[], subjects text[], request_ids text[], token uuid, keys text[], skips boolean,
    OUT deleted bigint[], OUT locked bigint[], OUT kept bigint[]
  ) LANGUAGE plpgsql SET search_path FROM CURRENT AS $$${functionBody}$$;`;

const spreadFunctionSql = `
  ${functionSql}
  SELECT create_distributed_function('${deleteFunction}', 'one', colocate_with => 'plants')`;
