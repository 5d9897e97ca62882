import type { ImportCounts, ImportOptions, PlantImport } from "../../plant-database.ts";
import { StoreOpenError } from "../../store-open-error.ts";
import { idsIn } from "../delete/delete-batch.ts";
import { verdictOn } from "../delete/fault-table.ts";
import { problemOf } from "../delete/problem.ts";
import type { Session } from "../server/session.ts";

// The ids are a parameter, and no other table takes part: distributed engines lack temporary tables, or do not join
// them with tables that are spread. The inner SELECT hides the number of ids from the planner, so that it looks them up
// in the index; otherwise it may read all records for each batch.
const findDeleted = `
  SELECT DISTINCT plant_id FROM unnest((SELECT $1::bigint[])) AS line (id) JOIN deletions ON plant_id = id`;

// ON CONFLICT, because an interrupted import is run again.
const insert = `
  WITH added AS (INSERT INTO plants SELECT unnest($1::bigint[]) ON CONFLICT DO NOTHING RETURNING id)
  SELECT array_agg(id) FROM added`;

const takeBack = "DELETE FROM plants WHERE id = ANY($1::bigint[])";

/** Starts an import while servers keep deleting. The import owns the session. */
export function startImport(session: Session, { restore = false }: ImportOptions): PlantImport {
  return {
    add: async (ids) => {
      // Sorted, so that neighbours in the index are written together, and two imports do not deadlock.
      const lines = Array.from(new BigInt64Array(ids).toSorted(), String);
      try {
        return await addLines(session, lines, restore);
      } catch (fault) {
        // Rolls back.
        session.discard();
        throw fault;
      }
    },
    [Symbol.asyncDispose]: () => session.close(),
  };
}

async function addLines(session: Session, lines: readonly string[], restore: boolean): Promise<ImportCounts> {
  await session.begin("BEGIN ISOLATION LEVEL READ COMMITTED");
  const deleted = restore ? new Set<string>() : await idsWithRecord(session, lines);
  const added = await insertIds(session, deleted.size === 0 ? lines : lines.filter((id) => !deleted.has(id)));
  // If a deletion is in progress, the INSERT waits for it, and then finds the id free. This looks for records again
  // with a new snapshot, and only among the added ids: a plant that was restored has a record, too.
  const meanwhile = restore ? new Set<string>() : await idsWithRecord(session, added);
  if (meanwhile.size > 0) await session.query(takeBack, [`{${[...meanwhile].join()}}`]);
  await session.commit().catch((fault: unknown) => {
    // Repeating it could undo a deletion that came after it.
    throw restore && verdictOn(fault) === "look" ? restoredInDoubt(fault) : fault;
  });
  for (const id of meanwhile) deleted.add(id);
  return countLines(lines, added.length - meanwhile.size, deleted);
}

function restoredInDoubt(fault: unknown): StoreOpenError {
  const text = "it is not known whether the last plants were restored; see which are there";
  return new StoreOpenError(`${problemOf(fault).text}: ${text}`, { cause: fault });
}

function countLines(lines: readonly string[], added: number, deleted: ReadonlySet<string>): ImportCounts {
  const ofDeleted = deleted.size === 0 ? 0 : lines.filter((id) => deleted.has(id)).length;
  return { added, deleted: ofDeleted, present: lines.length - added - ofDeleted };
}

/** Inserts ids, and returns those that are new. */
async function insertIds(session: Session, ids: readonly string[]): Promise<readonly string[]> {
  const [row] = await session.query(insert, [`{${ids.join()}}`]);
  return idsIn(row?.[0]);
}

async function idsWithRecord(session: Session, ids: readonly string[]): Promise<Set<string>> {
  return new Set((await session.query(findDeleted, [`{${ids.join()}}`])).map(([id]) => id ?? ""));
}
