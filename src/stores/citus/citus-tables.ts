import { escapeLiteral } from "pg";
import { type Requested, toStorableText } from "../contract/backend.ts";
import { verdictOn } from "../postgres/delete/fault-table.ts";
import { dropOldRows, idsOf, keysOf, probeWrite, type StoreTables } from "../postgres/delete/store-tables.ts";
import type { StoreSchema } from "../postgres/schema/store-schema.ts";
import { sqlStateOf } from "../postgres/server/connect.ts";
import { briefTransaction } from "../postgres/server/pinned-settings.ts";
import { type Shard, shardOf } from "./shards.ts";

// The settings also apply on the workers, for this transaction. Citus forwards a worker's warning as a debug message.
const begin = `${briefTransaction}; SET LOCAL citus.propagate_set_commands = 'local'; SET LOCAL lock_timeout = 100;
  SET LOCAL synchronous_commit = on; SET LOCAL row_security = off; SET LOCAL client_min_messages = debug1;
  SET LOCAL citus.worker_min_messages = debug1`;

/**
 * Returns the tables that Citus distributes over workers, with a plant and its records on one worker.
 *
 * A batch has only plants of one worker, so its transaction is local to the worker, without a two-phase commit. If a
 * shard has just moved, the commit has two phases, which is slower. Each statement is for one shard, because Citus
 * supports SKIP LOCKED only within a shard. An index cannot be unique across workers, so a key applies to one plant.
 */
export function citusTables(schema: StoreSchema, shards: readonly Shard[]): StoreTables {
  const { plants, deletions } = schema;
  const lane = (id: bigint): number => shards[shardOf(shards, id)]?.worker ?? 0;
  // Enough for thousands of shards. A worker with very few hashes may be missing.
  const oneOfEach = new Map<number, bigint>();
  for (let id = 100_000n; id >= 0n; id--) oneOfEach.set(lane(id), id);
  return {
    lanes: { of: lane, maxInFlight: 1 },
    isDistributed: true,
    plants,
    // A cancelled COMMIT (57014) may have taken effect on a worker, so the records are looked up.
    verdictOn: (fault) => (sqlStateOf(fault) === "57014" ? "unknown" : verdictOn(fault)),
    deletePlants: (session, calls, token) =>
      session.transact(begin, async () => {
        /** Runs a statement for each shard, in one message. */
        const run = (part: readonly Requested[], toSql: (ofShard: readonly Requested[]) => string) =>
          session.run([...Map.groupBy(part, ({ id }) => shardOf(shards, id)).values()].map(toSql).join(";"));
        const rows = await run(calls, (part) => deleteOfShardSql(schema, part));
        const ids = new Set(rows.filter(({ length }) => length === 1).map(([id]) => id ?? ""));
        const keptCount = rows.length - 2 * ids.size;
        const gone = calls.filter(({ id }) => ids.has(String(id)));
        const records = gone.length === 0 ? [] : await run(gone, (part) => insertInShardSql(schema, part, token));
        // As on a single server, a trigger that drops a record or keeps one of several plants fails the batch.
        if (records.length < gone.length || (keptCount > 0 && calls.length > 1))
          await session.run("SELECT 'a trigger keeps a plant or drops its record'::bigint");
        return { ids, isKept: keptCount > 0 };
      }),
    // Reads the plants first, because two statements read two snapshots: the records are then those of all missing plants.
    // The record that is rolled back makes the commit wait for the worker's standbys.
    findWhy: (session, calls, tokens) =>
      session.transact(begin, async () => {
        // Values instead of parameters, because Citus cannot plan a statement once for all values (`plan_cache_mode`).
        const ids = `ANY('${idsOf(calls)}'::bigint[])`;
        const existing = await session.run(`SELECT id, NULL, NULL, NULL FROM ${plants} WHERE id = ${ids}`);
        const records = await session.run(
          `SELECT plant_id, idempotency_key, subject, batch FROM ${deletions} WHERE plant_id = ${ids}
           AND (idempotency_key = ANY(${escapeLiteral(keysOf(calls))}::text[]) OR batch = ANY('${tokens}'::uuid[]))`,
        );
        await session.run(`SAVEPOINT why; ${probeSql(schema, calls[0]?.id ?? 0n)}; ROLLBACK TO SAVEPOINT why`);
        return [...existing, ...records];
      }),
    dropPause: 0,
    dropOldRecords: (session, keptMs, slice) => dropOldRows(session, schema, keptMs, slice),
    // Checks each worker. Rejects if all are unavailable, or if one refuses the check, which only an operator can fix.
    checkWrite: async (session) => {
      const faults: unknown[] = [];
      const onFault = (fault: unknown): void => {
        if (verdictOn(fault) === "fail") throw fault;
        faults.push(fault);
      };
      for (const id of oneOfEach.values()) await probeWrite(session, schema, id, probeSql(schema, id)).catch(onFault);
      if (faults.length === oneOfEach.size) throw faults[0];
    },
  };
}

// The default for `seq` would involve the coordinator and its standbys. A random `seq` keeps concurrent checks from
// blocking each other. Real records have a positive `seq`.
const probeSql = ({ deletions }: StoreSchema, id: bigint): string => `
  INSERT INTO ${deletions} (seq, plant_id, subject, request_id, batch) OVERRIDING SYSTEM VALUE
  VALUES (-(1 + pg_catalog.random() * 1e15)::bigint, ${id}, '', '', '00000000-0000-0000-0000-000000000000')`;

const textOf = (text: string): string => escapeLiteral(toStorableText(text));

// Returns the free plants in two columns, and the deleted ones in one. Only this form, in which the ids are constants of
// one shard, is sent to the worker as it is.
function deleteOfShardSql({ plants, deletions }: StoreSchema, part: readonly Requested[]): string {
  const ids = `ANY('${idsOf(part)}'::bigint[])`;
  const used = part.flatMap(({ id, call: { idempotencyKey: key } }) =>
    key === undefined ? [] : [`(plant_id = ${id} AND idempotency_key = ${textOf(key)})`],
  );
  const usedSql = `EXISTS (SELECT FROM ${deletions} WHERE plant_id = ${plants}.id AND (${used.join(" OR ")}))`;
  const unused = used.length === 0 ? "" : `AND NOT ${usedSql}`;
  const free = `${plants} WHERE id = ${ids} ${unused} FOR UPDATE SKIP LOCKED`;
  return `SELECT id, '' FROM ${free}; DELETE FROM ${plants} WHERE id = ${ids} AND id IN (SELECT id FROM ${free}) RETURNING id`;
}

// Only VALUES is sent to the worker as it is. INSERT … SELECT would send its rows through the coordinator's disk.
function insertInShardSql({ deletions }: StoreSchema, part: readonly Requested[], token: string): string {
  const rows = part.map(({ id, call: { subject, requestId, idempotencyKey: key } }) =>
    [id, textOf(subject), textOf(requestId), `'${token}'`, key === undefined ? "NULL" : textOf(key)].join(),
  );
  return `INSERT INTO ${deletions} (plant_id, subject, request_id, batch, idempotency_key) VALUES (${rows.join("), (")}) RETURNING plant_id`;
}
