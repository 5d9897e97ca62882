import { randomUUID } from "node:crypto";
import { keysOf, parseIdArray, toArrayLiteral } from "../delete/array-literals.ts";
import type { PreparedBatch } from "../delete/prepared-batch.ts";
import { verdictOn } from "../delete/fault-table.ts";
import { findKeysSql, toIds } from "../delete/single-server.ts";
import type { Placement, PlantFate } from "../delete/placement.ts";
import { probeWrite } from "../delete/probe-write.ts";
import type { StoreSchema } from "../schema/store-schema.ts";
import { readCommitted } from "../server/pinned-settings.ts";
import type { Row, Session } from "../server/session.ts";
import { distributedDays } from "./by-day.ts";
import type { Shards } from "./shards.ts";

// The shortest time for the check of a worker, in milliseconds, unless the deadline is earlier.
const workerMsMin = 1_000;

// Citus runs this function on the worker of the first plant.
const deleteOnWorkerSql = ({ quoted }: StoreSchema): string => `
  SELECT deleted, locked, kept FROM ${quoted}.plantstore_delete(
    $1::bigint, $2::bigint[], $3::pg_catalog.text[], $4::pg_catalog.text[], $5::pg_catalog.uuid,
    $6::pg_catalog.text[], $7::boolean)`;

const existingPlantsSql = ({ plants }: StoreSchema): string => `SELECT id FROM ${plants} WHERE id = ANY($1::bigint[])`;

// A key contains its plant, so only the workers of these plants are queried.
const keysSql = "idempotency_key = ANY($1::pg_catalog.text[]) AND plant_id = ANY($2::bigint[])";

// Rows per transaction: a shard compares each plant with each number.
const droppedMax = 1_000;

// Without SKIP LOCKED, which works on one shard at a time: concurrent processes may wait for each other.
const oldRecordsSql = ({ deletions }: StoreSchema, condition: string): string => `
  SELECT plant_id, seq FROM ${deletions} WHERE ${condition} AND deleted_at < pg_catalog.now() - $1::interval
  ORDER BY deleted_at LIMIT $2::integer`;
const dropSql = ({ deletions }: StoreSchema, condition: string): string =>
  `DELETE FROM ${deletions} WHERE ${condition} AND plant_id = ANY($1::bigint[]) AND seq = ANY($2::bigint[]) RETURNING 1`;

// Citus would use a sequence of the coordinator, and then wait for its standbys, which a deletion on a worker does not
// do. So each check uses a random number, of so many that concurrent checks do not have the same: one would wait until
// the other has rolled back its record. It is negative because the numbers of deletions start at 1.
const probeRecordSql = ({ deletions }: StoreSchema, id: bigint): string => `
  INSERT INTO ${deletions} (seq, plant_id, subject, request_id, batch) OVERRIDING SYSTEM VALUE
  VALUES (-(1 + pg_catalog.random() * 1e15)::bigint, ${id}, '', '', '00000000-0000-0000-0000-000000000000')`;

/**
 * Returns the placement of tables that Citus has distributed over its workers (docs.citusdata.com), by the id of the
 * plant: a plant and the records of its deletions are on the same worker.
 *
 * - A statement that both deletes and records would be a two-phase commit over all workers. In a function that Citus
 *   runs on the worker of its first argument it is a local transaction; so each batch is for one worker.
 * - If records are partitioned by day, the function sets the day of those without a key.
 * - A statement for workers cannot contain functions that change settings. Statements that need pinned settings, other
 *   than the function that deletes, are run in a transaction that pins them first.
 * - An index cannot be unique across workers, so an idempotency key applies to one plant, whose id is its prefix in
 *   records.
 */
export function citusPlacement(schema: StoreSchema, shards: Shards, isByDay: boolean): Placement {
  // Day partitions have no records with a key, and are dropped as a whole instead of row by row.
  const inAllDays = isByDay ? "day IS NULL" : "true";
  const findKeyRecordsSql = findKeysSql(schema, `${keysSql} AND ${inAllDays}`, "true");
  const callOnWorker = deleteOnWorkerSql(schema);
  const checkWorkerOf = async (session: Session, id: bigint): Promise<void> => {
    // Rejects if the worker of the plant would not make a deletion durable.
    await session.query(callOnWorker, [id, "{}", "{}", "{}", null, null, false]);
  };
  return {
    schema,
    isDistributed: true,
    // A batch costs a statement for each shard that it touches, so fewer and larger batches are cheaper.
    // test/suites/citus/load.ts: twice as many deletions as with two in flight.
    inFlightMax: 1,
    workerOf: (id) => shards.workerOf(id),
    toRecordedCall: (call, id) =>
      call.idempotencyKey === undefined ? call : { ...call, idempotencyKey: `${id}:${call.idempotencyKey}` },
    deletePlants: async (session, batch) => {
      const [row] = await session.query(callOnWorker, valuesOf(batch, false));
      return parseIdArray(row?.[0]).map(BigInt);
    },
    deleteUnlockedPlants: async (session, batch) => {
      const [row] = await session.query(callOnWorker, valuesOf(batch, true));
      return toFates(row);
    },
    // The function that deletes has waited for the standbys.
    findPlants: async (session, ids) =>
      toIds(await session.queryInTransaction(existingPlantsSql(schema), [toArrayLiteral(ids)])),
    runLookup: (session, toSql, values) => session.queryInTransaction(toSql("true"), values),
    // By a batch without plants, which waits for the standbys of the worker.
    waitForStandbys: async (session, [one]) => {
      await session.query(callOnWorker, [one, "{}", "{}", "{}", randomUUID(), null, false]);
    },
    findKeyRecords: (session, keyed) =>
      session.queryInTransaction(findKeyRecordsSql, [keysOf(keyed), toArrayLiteral(keyed.map(({ id }) => id))]),
    // Dropping a record costs half as much as its deletion: with pauses, it could be slower than deletions add records.
    dropPause: 0,
    days: isByDay ? distributedDays(schema) : undefined,
    dropOldRecords: (session, keptMs, { max }) =>
      session.transact(readCommitted, async () => {
        const limit = Math.min(max, droppedMax);
        const old = await session.query(oldRecordsSql(schema, inAllDays), [`${keptMs} milliseconds`, limit]);
        if (old.length === 0) return { count: 0, isMore: false };
        const [ids, seqs] = [0, 1].map((column) => `{${old.map((row) => row[column]).join()}}`);
        const { length: count } = await session.query(dropSql(schema, inAllDays), [ids, seqs]);
        // If triggers keep a whole slice, the next one would be the same.
        return { count, isMore: count > 0 && old.length === limit };
      }),
    checkWorkers: (session) => checkEachWorker(session, shards, (id) => checkWorkerOf(session, id)),
    checkWrite: (session) =>
      checkEachWorker(session, shards, async (id) => {
        await probeWrite(session, schema, id, probeRecordSql(schema, id));
        await checkWorkerOf(session, id);
      }),
  };
}

/** Returns the parameters of the function for a batch. It returns arrays of deleted, locked and kept plants. */
function valuesOf({ firstOf, values }: PreparedBatch, skips: boolean): readonly unknown[] {
  const [one] = firstOf.keys();
  const [ids, subjects, requestIds, token, keys = null] = values;
  return [one, ids, subjects, requestIds, token, keys, skips];
}

function toFates(row: Row | undefined): Map<bigint, PlantFate> {
  const fates = new Map<bigint, PlantFate>();
  const kinds: readonly PlantFate[] = ["deleted", "locked", "kept"];
  for (const [i, fate] of kinds.entries()) for (const id of parseIdArray(row?.[i])) fates.set(BigInt(id), fate);
  return fates;
}

/**
 * Runs a check for a plant of each worker. An unavailable worker does not affect the plants of others, so it is an
 * error only if all workers are unavailable, and its check gets only a part of the time. A worker that refuses is
 * always an error, which only the operator can fix.
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
