import { randomUUID } from "node:crypto";
import { keysOf, parseIdArray, toArrayLiteral } from "../postgres/delete/array-literals.ts";
import type { PreparedBatch } from "../postgres/delete/prepared-batch.ts";
import { verdictOn } from "../postgres/delete/fault-table.ts";
import { findKeysSql, toIds } from "../postgres/delete/single-server.ts";
import type { Placement, PlantOutcome } from "../postgres/delete/placement.ts";
import { probeWrite } from "../postgres/delete/probe-write.ts";
import type { StoreSchema } from "../postgres/schema/store-schema.ts";
import { readCommitted } from "../postgres/server/pinned-settings.ts";
import type { Session } from "../postgres/server/session.ts";
import { sqlStateOf } from "../postgres/server/sql-state.ts";
import type { Shards } from "./shards.ts";

// Minimum timeout for checking a worker, in milliseconds. The session's deadline may be earlier.
const workerMsMin = 1_000;

// Citus runs this function on the first plant's worker.
const deleteOnWorkerSql = ({ quoted }: StoreSchema): string => `
  SELECT deleted, locked, kept FROM ${quoted}.plantstore_delete(
    $1::bigint, $2::bigint[], $3::pg_catalog.text[], $4::pg_catalog.text[], $5::pg_catalog.uuid,
    $6::pg_catalog.text[], $7::boolean)`;

// The outcome for each column of `deleteOnWorkerSql`.
const outcomes: readonly PlantOutcome[] = ["deleted", "deferred", "protected"];

const existingPlantsSql = ({ plants }: StoreSchema): string => `SELECT id FROM ${plants} WHERE id = ANY($1::bigint[])`;

// A stored idempotency key starts with the plant's id, so the query runs only on the workers of these plants.
const keysSql = "idempotency_key = ANY($1::pg_catalog.text[]) AND plant_id = ANY($2::bigint[])";

// Maximum number of rows per transaction. The maximum is low, because a shard compares each plant id with each `seq`.
const droppedMax = 1_000;

// Does not use SKIP LOCKED, because Citus supports SKIP LOCKED only for one shard. Processes may wait for each other.
const oldRecordsSql = ({ deletions }: StoreSchema): string => `
  SELECT plant_id, seq FROM ${deletions} WHERE deleted_at < pg_catalog.now() - $1::interval
  ORDER BY deleted_at LIMIT $2::integer`;
const dropSql = ({ deletions }: StoreSchema): string =>
  `DELETE FROM ${deletions} WHERE plant_id = ANY($1::bigint[]) AND seq = ANY($2::bigint[]) RETURNING 1`;

// The default for `seq` would involve the coordinator and its standbys. A random `seq` keeps concurrent checks from
// blocking each other. Real records have a positive `seq`.
const probeRecordSql = ({ deletions }: StoreSchema, id: bigint): string => `
  INSERT INTO ${deletions} (seq, plant_id, subject, request_id, batch) OVERRIDING SYSTEM VALUE
  VALUES (-(1 + pg_catalog.random() * 1e15)::bigint, ${id}, '', '', '00000000-0000-0000-0000-000000000000')`;

/**
 * Returns the operations for tables that Citus distributes over workers, with a plant and its records on one worker.
 *
 * - A statement that deletes and records would be a two-phase commit over all workers. So a batch contains only plants
 *   of one worker, and calls a function there, which is a local transaction.
 * - A statement for workers cannot call functions that change settings. So other statements that depend on pinned
 *   settings run in a transaction that first pins the settings.
 * - An index cannot be unique across workers. So an idempotency key applies to one plant, whose id prefixes the stored
 *   key.
 */
export function citusPlacement(schema: StoreSchema, shards: Shards): Placement {
  const findKeyRecordsSql = findKeysSql(schema, keysSql, "true");
  const callOnWorker = deleteOnWorkerSql(schema);
  const oneOfEach = shards.findOneOfEach();
  // Rejects if the worker of the plant would not make a deletion durable.
  const checkWorkerOf = async (session: Session, id: bigint): Promise<void> =>
    void (await session.query(callOnWorker, [id, "{}", "{}", "{}", null, null, false]));
  return {
    lanes: {
      of: (id) => shards.workerOf(id),
      // A batch costs one statement per shard with a plant of the batch, so larger batches are cheaper. In
      // test/suites/citus/load.ts, one batch in flight deletes twice as many plants per second as two batches.
      inFlightMax: 1,
      isUsed: (worker) => worker >= 0,
      toRecordedCall: (call, id) =>
        call.idempotencyKey === undefined ? call : { ...call, idempotencyKey: `${id}:${call.idempotencyKey}` },
    },
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
      return new Map(outcomes.flatMap((outcome, i) => parseIdArray(row?.[i]).map((id) => [BigInt(id), outcome])));
    },
    // Does not wait for standbys, because `plantstore_delete` has already waited for the standbys.
    findPlants: async (session, ids) =>
      toIds(await session.queryInTransaction(existingPlantsSql(schema), [toArrayLiteral(ids)])),
    runLookup: (session, toSql, values) => session.queryInTransaction(toSql(schema, "true"), values),
    // Commits a batch without plants, because the function then waits for the worker's standbys.
    waitForStandbys: async (session, [one]) =>
      void (await session.query(callOnWorker, [one, "{}", "{}", "{}", randomUUID(), null, false])),
    findKeyRecords: (session, keyed) =>
      session.queryInTransaction(findKeyRecordsSql, [keysOf(keyed), toArrayLiteral(keyed.map(({ id }) => id))]),
    dropPause: 0,
    dropOldRecords: (session, keptMs, { max }) =>
      session.transact(readCommitted, async () => {
        const limit = Math.min(max, droppedMax);
        const oldRecords = await session.query(oldRecordsSql(schema), [`${keptMs} milliseconds`, limit]);
        if (oldRecords.length === 0) return { count: 0, isMore: false };
        const [ids, seqs] = [0, 1].map((column) => `{${oldRecords.map((row) => row[column]).join()}}`);
        const { length: count } = await session.query(dropSql(schema), [ids, seqs]);
        // If triggers kept every record, the next slice would find the same records again.
        return { count, isMore: count > 0 && oldRecords.length === limit };
      }),
    // The coordinator does not know the standbys of the workers.
    findWarnings: () => Promise.resolve([]),
    checkWorkers: (session) => checkEachWorker(session, oneOfEach, (id) => checkWorkerOf(session, id)),
    checkWrite: (session) =>
      checkEachWorker(session, oneOfEach, async (id) => {
        await probeWrite(session, schema, id, probeRecordSql(schema, id));
        await checkWorkerOf(session, id);
      }),
  };
}

const moveProblem =
  'stores on Citus cannot be moved: move to a server without Citus, create the extension, and run "plantstore migrate"';

function valuesOf({ firstDeletions, values }: PreparedBatch, skips: boolean): readonly unknown[] {
  const [one] = firstDeletions.keys();
  const [ids, subjects, requestIds, token, keys = null] = values;
  return [one, ids, subjects, requestIds, token, keys, skips];
}

// Runs the check once for each worker, with an id on that worker. Each check gets a share of the remaining time.
// Rejects if all workers are unavailable. Also rejects if a worker refuses the check, which only an operator can fix.
async function checkEachWorker(
  session: Session,
  oneOfEach: readonly bigint[],
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
