import type { ImportCounts, ImportOptions, PlantImport } from "../../contract/plant-database.ts";
import { StoreOpenError } from "../../contract/store-open-error.ts";
import { parseIdArray, toArrayLiteral } from "../delete/array-literals.ts";
import { verdictOn } from "../delete/fault-table.ts";
import { problemOf } from "../delete/problem.ts";
import { emitMessageSql } from "../delete/single-server.ts";
import type { StoreSchema } from "../schema/store-schema.ts";
import { readCommitted } from "../server/pinned-settings.ts";
import { isOutcomeUnknown, retryTransientErrors } from "../server/retry-transient-errors.ts";
import type { Session } from "../server/session.ts";
import { sqlStateOf } from "../server/sql-state.ts";
import { copyPlants } from "./copy-plants.ts";

// The ids are a parameter, because distributed engines may not support temporary tables. The inner SELECT hides the
// number of ids from the planner, so that the planner uses the index instead of reading all records.
const findDeleted = ({ deletions }: StoreSchema): string => `
  SELECT DISTINCT plant_id
  FROM pg_catalog.unnest((SELECT $1::bigint[])) AS line (id) JOIN ${deletions} ON plant_id = id`;

// Used for ids that are close together, as in an export. Reads one range in the index instead of searching for each id.
const findDeletedBetween = ({ deletions }: StoreSchema): string =>
  `SELECT DISTINCT plant_id FROM ${deletions} WHERE plant_id BETWEEN $1 AND $2`;

// Maximum size of an id range, as a multiple of the number of ids. In a larger range, each id is searched separately,
// because the range may contain too many records for other ids.
const rangePerIdMax = 4n;

// ON CONFLICT skips existing ids, because an interrupted import may be run again.
const insert = ({ plants }: StoreSchema): string => `
  WITH added AS (INSERT INTO ${plants} SELECT pg_catalog.unnest($1::bigint[]) ON CONFLICT DO NOTHING RETURNING id)
  SELECT pg_catalog.array_agg(id) FROM added`;

// Maximum number of ids per transaction. Large enough for a low commit cost, but small enough to hold locks briefly.
const batchMax = 10_000;

// SQLSTATE classes of COPY errors that other transactions, the server or the connection caused.
const unrelatedToIds = /^(?:08|40|53|57)/;

// Existing plants may be from an import that did not wait for the standbys. Committing a message waits for the
// standbys, but distributed engines may not support messages.
const hasStandbysSql = "SELECT WHERE pg_catalog.current_setting('synchronous_standby_names', true) <> ''";

const removeIds = ({ plants }: StoreSchema): string => `DELETE FROM ${plants} WHERE id = ANY($1::bigint[])`;

/** Starts an import. Servers may delete plants at the same time. The import owns the session. */
export function startImport(session: Session, schema: StoreSchema, { restore = false }: ImportOptions): PlantImport {
  const target = { session, schema };
  let isAllNew = true;
  return {
    batchMax,
    add: async (ids) => {
      const counts = await addBatch(target, ids, restore, isAllNew);
      // After a batch with existing or deleted ids, COPY would probably fail for the next batch.
      isAllNew = counts.added === ids.length;
      return counts;
    },
    [Symbol.asyncDispose]: () => session.close(),
  };
}

interface Target {
  readonly session: Session;
  readonly schema: StoreSchema;
}

/** @param mayBeNew - whether to try COPY for the whole batch first */
async function addBatch(
  target: Target,
  ids: readonly bigint[] | BigInt64Array,
  restore: boolean,
  mayBeNew: boolean,
): Promise<ImportCounts> {
  const { session } = target;
  // Sorts the ids, so that adjacent index entries are written together, and two imports do not deadlock.
  const lines = new BigInt64Array(ids).toSorted();
  // Ids that attempts with an unknown outcome may have added. Counted as added even if a retry finds them present.
  const added = new Set<string>();
  return await retryTransientErrors(session, async () => {
    const isCopied = mayBeNew && (await copyNew(target, lines, restore));
    const inserted = isCopied ? undefined : await insertLines(target, lines, restore);
    if (inserted?.added.length === 0 && (await session.query(hasStandbysSql)).length > 0)
      await session.query(emitMessageSql);
    try {
      await session.commit();
    } catch (fault) {
      // Does not retry. If the batch was committed, a retry would restore plants that were deleted after the commit.
      if (restore && verdictOn(fault) === "unknown") {
        const text = "it is unknown whether the last batch was restored; check which of its plants exist";
        throw new StoreOpenError(`${problemOf(fault).text}: ${text}`, { cause: fault });
      }
      if (isOutcomeUnknown(fault)) for (const id of inserted?.added ?? lines) added.add(String(id));
      throw fault;
    }
    if (inserted === undefined) return { added: lines.length, deleted: 0, present: 0 };
    return countLines(lines, new Set([...added, ...inserted.added]), inserted.deleted);
  });
}

// Copies ids in a new transaction. If all ids are new, returns true and keeps the transaction open, else rolls back.
// COPY costs half as much as INSERT.
async function copyNew(target: Target, lines: BigInt64Array, restore: boolean): Promise<boolean> {
  const { session, schema } = target;
  await session.begin(readCommitted);
  try {
    const count = await copyPlants(session, schema, lines);
    // Reads the deletion records after the COPY, because the COPY waits for concurrent deletions.
    if (count === lines.length && (restore || (await idsWithRecord(target, lines)).size === 0)) return true;
  } catch (fault) {
    // Other errors mean that an id exists (an internal error on Citus), a trigger refuses an id, or COPY is missing.
    if (unrelatedToIds.test(sqlStateOf(fault) ?? "08")) throw fault;
  }
  await session.rollBack();
  return false;
}

function countLines(ids: BigInt64Array, added: Set<string>, deleted: ReadonlySet<string>): ImportCounts {
  for (const id of deleted) added.delete(id);
  const deletedCount = deleted.size === 0 ? 0 : ids.filter((id) => deleted.has(String(id))).length;
  return { added: added.size, deleted: deletedCount, present: ids.length - added.size - deletedCount };
}

interface InsertedLines {
  readonly added: readonly string[];
  readonly deleted: ReadonlySet<string>;
}

// Inserts ids in a new transaction, and keeps the transaction open.
async function insertLines(target: Target, lines: BigInt64Array, restore: boolean): Promise<InsertedLines> {
  await target.session.begin(readCommitted);
  if (restore) return { added: await insertIds(target, lines), deleted: new Set() };
  const recordedBefore = await idsWithRecord(target, lines);
  const undeleted = recordedBefore.size === 0 ? lines : lines.filter((id) => !recordedBefore.has(String(id)));
  const added = await insertIds(target, undeleted);
  // The INSERT waits for a deletion in progress, and then inserts the id. So a second query reads the records with a
  // new snapshot. The query contains only the added ids. Other ids may belong to restored plants, which exist although
  // they have a record.
  const recordedMeanwhile = await idsWithRecord(target, BigInt64Array.from(added, BigInt));
  if (recordedMeanwhile.size > 0)
    await target.session.query(removeIds(target.schema), [toArrayLiteral([...recordedMeanwhile])]);
  return { added, deleted: new Set([...recordedBefore, ...recordedMeanwhile]) };
}

async function insertIds({ session, schema }: Target, ids: BigInt64Array): Promise<readonly string[]> {
  const [row] = await session.query(insert(schema), [toArrayLiteral(ids)]);
  return parseIdArray(row?.[0]);
}

async function idsWithRecord({ session, schema }: Target, ids: BigInt64Array): Promise<Set<string>> {
  const sorted = ids.toSorted();
  const [first, last] = [sorted.at(0), sorted.at(-1)];
  if (first === undefined || last === undefined) return new Set();
  if (last - first >= rangePerIdMax * BigInt(ids.length)) {
    return new Set((await session.query(findDeleted(schema), [toArrayLiteral(ids)])).map(([id]) => id ?? ""));
  }
  const deletedInRange = await session.query(findDeletedBetween(schema), [first, last]);
  if (deletedInRange.length === 0) return new Set();
  const requested = new Set(Array.from(ids, String));
  return new Set(deletedInRange.map(([id]) => id ?? "").filter((id) => requested.has(id)));
}
