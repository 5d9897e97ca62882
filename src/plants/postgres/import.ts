import type { ImportCounts, ImportOptions, PlantImport } from "../plant-database.ts";
import { copyRowsOf } from "./copy-rows.ts";
import type { Session } from "./session.ts";

// The batch is kept in a temporary table, so that no id is sent twice. Behind PgBouncer the next transaction may use
// another server connection, so the tables live for one transaction.
const begin = `
  BEGIN;
  CREATE TEMP TABLE plantstore_line (id bigint NOT NULL) ON COMMIT DROP;
  CREATE TEMP TABLE plantstore_added (id bigint NOT NULL) ON COMMIT DROP`;

const copyLines = "COPY pg_temp.plantstore_line FROM STDIN (FORMAT binary)";

// Sorted, so that neighbours in the index are written together, and two imports cannot deadlock. ON CONFLICT, because
// an interrupted import is run again.
const insertAll = `
  WITH inserted AS (
    INSERT INTO plants SELECT DISTINCT id FROM pg_temp.plantstore_line ORDER BY id ON CONFLICT DO NOTHING RETURNING id)
  INSERT INTO pg_temp.plantstore_added SELECT id FROM inserted`;

const insertUndeleted = `
  WITH inserted AS (
    INSERT INTO plants SELECT DISTINCT id FROM pg_temp.plantstore_line AS line
    WHERE NOT EXISTS (SELECT FROM deletions WHERE plant_id = line.id)
    ORDER BY id ON CONFLICT DO NOTHING RETURNING id)
  INSERT INTO pg_temp.plantstore_added SELECT id FROM inserted`;

// If a deletion is in progress, the INSERT waits for it and then finds the place free, but it has checked for the
// record before. This checks again with a new snapshot, and only among the added rows: a plant that was restored has a
// record, too.
const takeBackDeleted = `
  DELETE FROM plants USING pg_temp.plantstore_added AS added
  WHERE plants.id = added.id AND EXISTS (SELECT FROM deletions WHERE plant_id = plants.id)
  RETURNING plants.id`;

const countAdded = "SELECT count(*) FROM pg_temp.plantstore_added";

const countDeleted = `
  SELECT count(*) FROM pg_temp.plantstore_line AS line
  WHERE EXISTS (SELECT FROM deletions WHERE plant_id = line.id)`;

/** Starts an import beside servers that keep deleting. It owns the session. */
export function startImport(session: Session, options: ImportOptions): PlantImport {
  const insertLines = options.restore === true ? insertAllLines : insertUndeletedLines;
  return {
    add: async (ids) => {
      try {
        await session.begin(begin);
        await session.copyIn(copyLines, copyRowsOf(ids));
        const { added, deleted } = await insertLines(session);
        await session.commit();
        return { added, deleted, present: ids.length - added - deleted };
      } catch (fault) {
        session.discard();
        throw fault;
      }
    },
    [Symbol.asyncDispose]: () => session.close(),
  };
}

type InsertCounts = Omit<ImportCounts, "present">;

async function insertAllLines(session: Session): Promise<InsertCounts> {
  await session.query(insertAll);
  return { added: await count(session, countAdded), deleted: 0 };
}

async function insertUndeletedLines(session: Session): Promise<InsertCounts> {
  await session.query(insertUndeleted);
  const takenBack = await session.query(takeBackDeleted);
  const added = (await count(session, countAdded)) - takenBack.length;
  return { added, deleted: await count(session, countDeleted) };
}

async function count(session: Session, query: string): Promise<number> {
  const [row] = await session.query(query);
  return Number(row?.[0]);
}
