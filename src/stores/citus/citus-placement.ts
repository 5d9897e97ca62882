import { randomUUID } from "node:crypto";
import type { Lanes } from "../contract/backend.ts";
import { keysOf, parseIdArray, toArrayLiteral } from "../postgres/delete/array-literals.ts";
import type { PreparedBatch } from "../postgres/delete/prepared-batch.ts";
import { verdictOn } from "../postgres/delete/fault-table.ts";
import { findKeysSql, toIds } from "../postgres/delete/single-server.ts";
import type { Dropped, Placement, PlantFate } from "../postgres/delete/placement.ts";
import { probeWrite } from "../postgres/delete/probe-write.ts";
import type { StoreSchema } from "../postgres/schema/store-schema.ts";
import { readCommitted } from "../postgres/server/pinned-settings.ts";
import type { Row, Session } from "../postgres/server/session.ts";
import { sqlStateOf } from "../postgres/server/sql-state.ts";
import type { Shards } from "./shards.ts";

// The shortest time for a worker's check, in milliseconds, unless the deadline is earlier.
const workerMsMin = 1_000;

// Citus runs this function on the first plant's worker.
const deleteOnWorkerSql = ({ quoted }: StoreSchema): string => `
  SELECT deleted, locked, kept FROM ${quoted}.plantstore_delete(
    $1::bigint, $2::bigint[], $3::pg_catalog.text[], $4::pg_catalog.text[], $5::pg_catalog.uuid,
    $6::pg_catalog.text[], $7::boolean)`;

const existingPlantsSql = ({ plants }: StoreSchema): string => `SELECT id FROM ${plants} WHERE id = ANY($1::bigint[])`;

// A key contains its plant, so only these plants' workers are queried.
const keysSql = "idempotency_key = ANY($1::pg_catalog.text[]) AND plant_id = ANY($2::bigint[])";

// Rows per transaction. Few, because a shard compares each plant id with each `seq`.
const droppedMax = 1_000;

// No SKIP LOCKED, because Citus supports it only for one shard at a time. So processes may wait for each other.
const oldRecordsSql = ({ deletions }: StoreSchema): string => `
  SELECT plant_id, seq FROM ${deletions} WHERE deleted_at < pg_catalog.now() - $1::interval
  ORDER BY deleted_at LIMIT $2::integer`;
const dropSql = ({ deletions }: StoreSchema): string =>
  `DELETE FROM ${deletions} WHERE plant_id = ANY($1::bigint[]) AND seq = ANY($2::bigint[]) RETURNING 1`;

// The default for `seq` would come from the coordinator, so that the check would also wait for the coordinator's
// standbys. The number is random, so that concurrent checks do not wait for each other, and negative, unlike the
// numbers in deletions.
const probeRecordSql = ({ deletions }: StoreSchema, id: bigint): string => `
  INSERT INTO ${deletions} (seq, plant_id, subject, request_id, batch) OVERRIDING SYSTEM VALUE
  VALUES (-(1 + pg_catalog.random() * 1e15)::bigint, ${id}, '', '', '00000000-0000-0000-0000-000000000000')`;

/**
 * Returns the placement of tables that Citus has distributed over its workers (docs.citusdata.com), by the plant's id:
 * a plant and its deletion records are on the same worker.
 *
 * - A statement that both deletes and records would be a two-phase commit over all workers. A function that Citus runs
 *   on its first argument's worker is a local transaction there, so each batch contains plants on one worker only.
 * - A statement for workers cannot contain functions that change settings. So statements that depend on pinned
 *   settings, except the function that deletes, are run in a transaction that pins them first.
 * - An index cannot be unique across workers. So an idempotency key applies to one plant only, and records store it
 *   with the plant's id as a prefix.
 */
export function citusPlacement(schema: StoreSchema, shards: Shards): Placement {
  const findKeyRecordsSql = findKeysSql(schema, keysSql, "true");
  const callOnWorker = deleteOnWorkerSql(schema);
  const checkWorkerOf = async (session: Session, id: bigint): Promise<void> => {
    // Rejects if the plant's worker would not make a deletion durable.
    await session.query(callOnWorker, [id, "{}", "{}", "{}", null, null, false]);
  };
  return {
    schema,
    lanes: lanesOf(shards),
    mayFailPartly: true,
    moveProblem,
    // A worker may still commit after its coordinator was cancelled.
    mayBeCommitted: (fault) => sqlStateOf(fault) === "57014",
    deletePlants: async (session, batch) => {
      const [row] = await session.query(callOnWorker, valuesOf(batch, false));
      return parseIdArray(row?.[0]).map(BigInt);
    },
    deleteUnlockedPlants: async (session, batch) => {
      const [row] = await session.query(callOnWorker, valuesOf(batch, true));
      return toFates(row);
    },
    // No wait for standbys here, because the function that deletes has already waited for them.
    findPlants: async (session, ids) =>
      toIds(await session.queryInTransaction(existingPlantsSql(schema), [toArrayLiteral(ids)])),
    runLookup: (session, toSql, values) => session.queryInTransaction(toSql("true"), values),
    // Runs a batch without plants, which waits for the worker's standbys.
    waitForStandbys: async (session, [one]) => {
      await session.query(callOnWorker, [one, "{}", "{}", "{}", randomUUID(), null, false]);
    },
    findKeyRecords: (session, keyed) =>
      session.queryInTransaction(findKeyRecordsSql, [keysOf(keyed), toArrayLiteral(keyed.map(({ id }) => id))]),
    // No pauses. Dropping a record costs half as much as adding it, so with pauses records could accumulate.
    dropPause: 0,
    days: undefined,
    dropOldRecords: (session, keptMs, { max }) =>
      session.transact(readCommitted, () => dropRecords(session, schema, keptMs, max)),
    // The workers' standbys are not known to the coordinator.
    findWarnings: () => Promise.resolve([]),
    checkWorkers: (session) => checkEachWorker(session, shards, (id) => checkWorkerOf(session, id)),
    checkWrite: (session) =>
      checkEachWorker(session, shards, async (id) => {
        await probeWrite(session, schema, id, probeRecordSql(schema, id));
        await checkWorkerOf(session, id);
      }),
  };
}

const moveProblem =
  'stores on Citus cannot be moved: move to a server without Citus, create the extension, and run "plantstore migrate"';

/** Returns a lane for each worker. */
function lanesOf(shards: Shards): Lanes {
  return {
    of: (id) => shards.workerOf(id),
    // A batch costs one statement per shard that it touches, so fewer and larger batches are cheaper. In
    // test/suites/citus/load.ts, twice as many plants are deleted per second as with two batches in flight.
    inFlightMax: 1,
    isUsed: (worker) => worker >= 0,
    toRecordedCall: (call, id) =>
      call.idempotencyKey === undefined ? call : { ...call, idempotencyKey: `${id}:${call.idempotencyKey}` },
  };
}

async function dropRecords(session: Session, schema: StoreSchema, keptMs: number, max: number): Promise<Dropped> {
  const limit = Math.min(max, droppedMax);
  const oldRecords = await session.query(oldRecordsSql(schema), [`${keptMs} milliseconds`, limit]);
  if (oldRecords.length === 0) return { count: 0, isMore: false };
  const [ids, seqs] = [0, 1].map((column) => `{${oldRecords.map((row) => row[column]).join()}}`);
  const { length: count } = await session.query(dropSql(schema), [ids, seqs]);
  // If triggers kept every record in the slice, the next slice would find the same records again.
  return { count, isMore: count > 0 && oldRecords.length === limit };
}

/** Returns the function's parameters for a batch. The function returns deleted, locked and kept plants as arrays. */
function valuesOf({ firstOf, values }: PreparedBatch, skips: boolean): readonly unknown[] {
  const [one] = firstOf.keys();
  const [ids, subjects, requestIds, token, keys = null] = values;
  return [one, ids, subjects, requestIds, token, keys, skips];
}

function toFates(row: Row | undefined): Map<bigint, PlantFate> {
  const fates = new Map<bigint, PlantFate>();
  const kinds: readonly PlantFate[] = ["deleted", "deferred", "protected"];
  for (const [i, fate] of kinds.entries()) for (const id of parseIdArray(row?.[i])) fates.set(BigInt(id), fate);
  return fates;
}

/**
 * Runs a check on each worker, with an id that belongs to it and a share of the time. Rejects only if all workers are
 * unavailable, or if any worker refuses the check, which only the operator can fix.
 */
async function checkEachWorker(
  session: Session,
  { oneOfEach }: Shards,
  check: (id: bigint) => Promise<void>,
): Promise<void> {
  const faults: unknown[] = [];
  const endMs = session.deadlineMs;
  for (const [i, id] of oneOfEach.entries()) {
    const nowMs = performance.now();
    session.deadlineMs = Math.min(endMs, nowMs + Math.max(workerMsMin, (endMs - nowMs) / (oneOfEach.length - i)));
    try {
      await check(id);
    } catch (fault) {
      session.discard();
      if (verdictOn(fault) === "fail") throw fault;
      faults.push(fault);
    }
  }
  if (faults.length > 0 && faults.length === oneOfEach.length) throw faults[0];
}
