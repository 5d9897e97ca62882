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

// Maximum number of ids per transaction. Large enough for a low commit cost, but small enough to hold locks briefly.
const batchMax = 10_000;

// The inner SELECT hides the number of ids from the planner, so that the planner uses the index instead of reading all
// records. The ids are a parameter, because distributed engines may not support temporary tables.
const findDeleted = ({ deletions }: StoreSchema): string => `
  SELECT DISTINCT plant_id
  FROM pg_catalog.unnest((SELECT $1::bigint[])) AS line (id) JOIN ${deletions} ON plant_id = id`;

// ON CONFLICT skips existing ids, because an interrupted import may be run again.
const insert = ({ plants }: StoreSchema): string => `
  WITH added AS (INSERT INTO ${plants} SELECT pg_catalog.unnest($1::bigint[]) ON CONFLICT DO NOTHING RETURNING id)
  SELECT pg_catalog.array_agg(id) FROM added`;

// Existing plants may be from an import that did not wait for the standbys. Committing a message waits for them.
const waitSql = `${emitMessageSql} WHERE pg_catalog.current_setting('synchronous_standby_names', true) <> ''`;

const removeIds = ({ plants }: StoreSchema): string => `DELETE FROM ${plants} WHERE id = ANY($1::bigint[])`;

/** Starts an import. Servers may delete plants at the same time. The import owns the session. */
export function startImport(session: Session, schema: StoreSchema, { restore = false }: ImportOptions): PlantImport {
  return {
    batchMax,
    // Sorts the ids, so that adjacent index entries are written together, and two imports do not deadlock.
    add: (ids) => addBatch({ session, schema }, new BigInt64Array(ids).toSorted(), restore),
    [Symbol.asyncDispose]: () => session.close(),
  };
}

interface Target {
  readonly session: Session;
  readonly schema: StoreSchema;
}

async function addBatch(target: Target, lines: BigInt64Array, restore: boolean): Promise<ImportCounts> {
  const { session } = target;
  // Ids that attempts with an unknown outcome may have added. Counted as added even if a retry finds them present.
  const added = new Set<string>();
  return await retryTransientErrors(session, async () => {
    await session.begin(readCommitted);
    const inserted = await insertLines(target, lines, restore);
    if (inserted.added.length === 0) await session.query(waitSql);
    try {
      await session.commit();
    } catch (fault) {
      // Does not retry. If the batch was committed, a retry would restore plants that were deleted after the commit.
      if (restore && verdictOn(fault) === "unknown") {
        const text = "it is unknown whether the last batch was restored; check which of its plants exist";
        throw new StoreOpenError(`${problemOf(fault).text}: ${text}`, { cause: fault });
      }
      if (isOutcomeUnknown(fault)) for (const id of inserted.added) added.add(id);
      throw fault;
    }
    for (const id of inserted.added) added.add(id);
    for (const id of inserted.deleted) added.delete(id);
    const deleted = inserted.deleted.size === 0 ? 0 : lines.filter((id) => inserted.deleted.has(String(id))).length;
    return { added: added.size, deleted, present: lines.length - added.size - deleted };
  });
}

interface InsertedLines {
  readonly added: readonly string[];
  readonly deleted: ReadonlySet<string>;
}

async function insertLines(target: Target, lines: BigInt64Array, restore: boolean): Promise<InsertedLines> {
  const { session, schema } = target;
  const recordedBefore = restore ? new Set<string>() : await idsWithRecord(target, toArrayLiteral(lines));
  const undeleted = recordedBefore.size === 0 ? lines : lines.filter((id) => !recordedBefore.has(String(id)));
  const [row] = await session.query(insert(schema), [toArrayLiteral(undeleted)]);
  const added = parseIdArray(row?.[0]);
  if (restore) return { added, deleted: recordedBefore };
  // The INSERT waits for a deletion in progress, and then inserts the id. So a second query reads the records with a
  // new snapshot. The query contains only the added ids. Other ids may belong to restored plants, which exist although
  // they have a record.
  const recordedMeanwhile = await idsWithRecord(target, `{${added.join()}}`);
  if (recordedMeanwhile.size > 0) await session.query(removeIds(schema), [`{${[...recordedMeanwhile].join()}}`]);
  return { added, deleted: new Set([...recordedBefore, ...recordedMeanwhile]) };
}

async function idsWithRecord({ session, schema }: Target, ids: string): Promise<Set<string>> {
  return new Set((await session.query(findDeleted(schema), [ids])).map(([id]) => id ?? ""));
}
