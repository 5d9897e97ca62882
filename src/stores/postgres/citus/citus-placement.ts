import { randomUUID } from "node:crypto";
import { type DeleteBatch, idsIn, keysOf, toArray } from "../delete/delete-batch.ts";
import { verdictOn } from "../delete/fault-table.ts";
import { findKeysSql, toIds } from "../delete/one-server.ts";
import type { Placement, PlantFate } from "../delete/placement.ts";
import { probeWrite } from "../delete/probe-write.ts";
import type { StoreSchema } from "../schema/store-schema.ts";
import { readCommitted } from "../server/pinned-settings.ts";
import type { Row, Session } from "../server/session.ts";
import { spreadDays } from "./by-day.ts";
import type { Shards } from "./shards.ts";

// The shortest time for the check of a worker, in milliseconds, if any is left.
const workerMsMin = 1_000;

// Citus runs this function on the worker of the first plant.
const deleteOnWorkerSql = ({ quoted }: StoreSchema): string => `
  SELECT deleted, locked, kept FROM ${quoted}.plantstore_delete(
    $1::bigint, $2::bigint[], $3::pg_catalog.text[], $4::pg_catalog.text[], $5::pg_catalog.uuid,
    $6::pg_catalog.text[], $7::boolean)`;

const stillThereSql = ({ plants }: StoreSchema): string => `SELECT id FROM ${plants} WHERE id = ANY($1::bigint[])`;

// A key names its plant, so only the workers of these plants need to look.
const keysSql = "idempotency_key = ANY($1::pg_catalog.text[]) AND plant_id = ANY($2::bigint[])";

// Rows per transaction: a shard compares each plant of them with each number.
const droppedMax = 1_000;

// Without SKIP LOCKED, which works on one shard at a time: processes that do so at once may wait for each other.
const oldRecordsSql = ({ deletions }: StoreSchema, condition: string): string => `
  SELECT plant_id, seq FROM ${deletions} WHERE ${condition} AND deleted_at < pg_catalog.now() - $1::interval
  ORDER BY deleted_at LIMIT $2::integer`;
const dropSql = ({ deletions }: StoreSchema, condition: string): string =>
  `DELETE FROM ${deletions} WHERE ${condition} AND plant_id = ANY($1::bigint[]) AND seq = ANY($2::bigint[]) RETURNING 1`;

// Citus would take the number from a sequence of the coordinator, and then wait for the standbys of that, which a
// deletion that a worker runs does not. Each look makes up its own, among so many that no two looks at once have the
// same: one would wait until the other has taken its record back. It is negative because those of deletions begin at 1.
const probeRecordSql = ({ deletions }: StoreSchema, id: bigint): string => `
  INSERT INTO ${deletions} (seq, plant_id, subject, request_id, batch) OVERRIDING SYSTEM VALUE
  VALUES (-(1 + pg_catalog.random() * 1e15)::bigint, ${id}, '', '', '00000000-0000-0000-0000-000000000000')`;

/**
 * Returns the placement of tables that Citus has spread over its workers (docs.citusdata.com), by the id of the plant:
 * a plant and the records of its deletions are on the same worker.
 *
 * - A statement that deletes and records at once would be a two-phase commit over all workers. In a function that Citus
 *   runs on the worker of its first argument it is a local transaction; so batches are made for one worker each.
 * - Where records are divided by day, it marks those without a key with theirs.
 * - A statement for workers takes no function that sets something. What has to pin settings, other than the function
 *   that deletes, is run in a transaction that begins by it.
 * - No index can be unique across workers, so an idempotency key holds for one plant, with which it begins in records.
 */
export function citusPlacement(schema: StoreSchema, shards: Shards, isByDay: boolean): Placement {
  // By day, no other partition has records with a key, or such as are dropped row by row.
  const inAllDays = isByDay ? "day IS NULL" : "true";
  const lookForKeysSql = findKeysSql(schema, `${keysSql} AND ${inAllDays}`, "true");
  const callOnWorker = deleteOnWorkerSql(schema);
  const checkWorkerOf = async (session: Session, id: bigint): Promise<void> => {
    // Rejects if the worker of the plant would not make a deletion durable.
    await session.query(callOnWorker, [id, "{}", "{}", "{}", null, null, false]);
  };
  return {
    schema,
    isSpread: true,
    // A batch costs a statement for each shard that it touches, so fewer and larger batches are cheaper.
    // test/suites/citus/load.ts: twice as many deletions as with two at a time.
    inFlightMax: 1,
    workerOf: (id) => shards.workerOf(id),
    toRecordedCall: (call, id) =>
      call.idempotencyKey === undefined ? call : { ...call, idempotencyKey: `${id}:${call.idempotencyKey}` },
    deletePlants: async (session, batch) => {
      const [row] = await session.query(callOnWorker, valuesOf(batch, false));
      return idsIn(row?.[0]).map(BigInt);
    },
    deleteUnlockedPlants: async (session, batch) => {
      const [row] = await session.query(callOnWorker, valuesOf(batch, true));
      return toFates(row);
    },
    // The function that deletes has waited for the standbys.
    findPlants: async (session, ids) => toIds(await session.queryInTransaction(stillThereSql(schema), [toArray(ids)])),
    lookUp: (session, toSql, values) => session.queryInTransaction(toSql("true"), values),
    // By a batch without plants: what is not there is on the standbys of the worker once it is answered.
    waitForStandbys: async (session, [one]) => {
      await session.query(callOnWorker, [one, "{}", "{}", "{}", randomUUID(), null, false]);
    },
    findKeyRecords: (session, keyed) =>
      session.queryInTransaction(lookForKeysSql, [keysOf(keyed), toArray(keyed.map(({ id }) => id))]),
    // To drop a record costs half as much as its deletion did: with rests, they could come faster than they go.
    dropRest: 0,
    days: isByDay ? spreadDays(schema) : undefined,
    dropOldRecords: (session, keptMs, { max }) =>
      session.transact(readCommitted, async () => {
        const limit = Math.min(max, droppedMax);
        const old = await session.query(oldRecordsSql(schema, inAllDays), [`${keptMs} milliseconds`, limit]);
        if (old.length === 0) return { count: 0, isMore: false };
        const [ids, seqs] = [0, 1].map((column) => `{${old.map((row) => row[column]).join()}}`);
        const { length: count } = await session.query(dropSql(schema, inAllDays), [ids, seqs]);
        // A slice that triggers keep whole would be the next one, too.
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

/** Returns the parameters by which the function deletes a batch; it returns arrays of those deleted, locked and kept. */
function valuesOf({ firstOf, values }: DeleteBatch, skips: boolean): readonly unknown[] {
  const [one] = firstOf.keys();
  const [ids, subjects, requestIds, token, keys = null] = values;
  return [one, ids, subjects, requestIds, token, keys, skips];
}

function toFates(row: Row | undefined): Map<bigint, PlantFate> {
  const fates = new Map<bigint, PlantFate>();
  const kinds: readonly PlantFate[] = ["deleted", "locked", "kept"];
  for (const [i, fate] of kinds.entries()) for (const id of idsIn(row?.[i])) fates.set(BigInt(id), fate);
  return fates;
}

/**
 * Runs a check for a plant of each worker. A worker that is away does not keep the plants of others from being deleted,
 * so it is a fault only if all workers are, and has a part of the time only. A worker that refuses is always a fault,
 * which only the operator can mend.
 */
async function checkEachWorker(
  session: Session,
  { oneOfEach }: Shards,
  check: (id: bigint) => Promise<void>,
): Promise<void> {
  const faults: unknown[] = [];
  const endMs = session.untilMs;
  for (const [i, id] of oneOfEach.entries()) {
    const nowMs = performance.now();
    session.untilMs = Math.min(endMs, nowMs + Math.max(workerMsMin, (endMs - nowMs) / (oneOfEach.length - i)));
    try {
      await check(id);
    } catch (fault) {
      session.discard();
      if (verdictOn(fault) === "give-up") throw fault;
      faults.push(fault);
    }
  }
  if (faults.length > 0 && faults.length === oneOfEach.length) throw faults[0];
}
