import type { ImportCounts, ImportOptions, PlantImport } from "../plant-database.ts";
import type { Row, Session } from "./session.ts";

// One statement with an array was as fast as COPY into a table aside and an INSERT out of it, and leaves
// nothing aside to clean up. ON CONFLICT: an import that was interrupted is run again.
const insertAll = "INSERT INTO plants SELECT DISTINCT unnest($1::bigint[]) ON CONFLICT DO NOTHING RETURNING id";

const insertUndeleted = `
  INSERT INTO plants SELECT id FROM (SELECT DISTINCT unnest($1::bigint[]) AS id) AS line
  WHERE NOT EXISTS (SELECT FROM deletions WHERE plant_id = line.id)
  ON CONFLICT DO NOTHING RETURNING id`;

// Where a deletion is under way, the INSERT waits for it and then finds the place empty, but has looked
// for its record before. This looks again, with the eyes of a new statement.
const takeBackDeleted = `
  DELETE FROM plants WHERE id = ANY($1::bigint[]) AND EXISTS (SELECT FROM deletions WHERE plant_id = plants.id)
  RETURNING id`;

const deletedAmong = "SELECT DISTINCT plant_id FROM deletions WHERE plant_id = ANY($1::bigint[])";

/** Starts an import beside servers that go on deleting. The session is its own until the end. */
export function startImport(session: Session, options: ImportOptions): PlantImport {
  return {
    add: async (ids) => {
      try {
        await session.begin("BEGIN");
        const counts = await (options.restore === true ? addAll(session, ids) : addUndeleted(session, ids));
        await session.commit();
        return counts;
      } catch (fault) {
        session.discard();
        throw fault;
      }
    },
    [Symbol.asyncDispose]: () => session.close(),
  };
}

async function addAll(session: Session, ids: readonly bigint[]): Promise<ImportCounts> {
  const inserted = await session.query(insertAll, [`{${ids.join()}}`]);
  return { added: inserted.length, deleted: 0, present: ids.length - inserted.length };
}

async function addUndeleted(session: Session, ids: readonly bigint[]): Promise<ImportCounts> {
  const inserted = await session.query(insertUndeleted, [`{${ids.join()}}`]);
  const takenBack = await session.query(takeBackDeleted, [`{${inserted.map(idOf).join()}}`]);
  const wereDeleted = await session.query(deletedAmong, [`{${ids.join()}}`]);
  const deletedIds = new Set(wereDeleted.map(idOf));
  const deleted = ids.filter((id) => deletedIds.has(String(id))).length;
  const added = inserted.length - takenBack.length;
  return { added, deleted, present: ids.length - added - deleted };
}

function idOf([id]: Row): string {
  return id ?? "";
}
