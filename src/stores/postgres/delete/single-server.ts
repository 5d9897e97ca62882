import type { Lanes } from "../../contract/backend.ts";
import { type NamedStatement, nameStatement } from "../server/named-statements.ts";
import { ownRole, pinnedByRow, pinnedCondition } from "../server/pinned-settings.ts";
import type { Row } from "../server/session.ts";
import type { StoreSchema } from "../schema/store-schema.ts";
import { keysOf, toArrayLiteral } from "./array-literals.ts";
import type { PreparedBatch } from "./prepared-batch.ts";
import { dropOldRows } from "./drop-rows.ts";
import type { Placement, PlantOutcome } from "./placement.ts";
import { probeWrite } from "./probe-write.ts";

interface Statements {
  readonly deleteAll: NamedStatement;
  /** The statement for a single plant. Without joins, the statement uses 25 % less server time. */
  readonly deleteOne: NamedStatement;
  // The statement without lock waits. A plant that another transaction is deleting counts as locked, and is missing at
  // the next attempt.
  readonly deleteUnlocked: string;
}

/**
 * Builds the statements for batches with or without idempotency keys. Each column is an array parallel to the ids.
 *
 * - A plain `= ANY` locks rows in index scan order, so overlapping batches of several processes do not deadlock. With a
 *   join in the DELETE, the planner could choose another order.
 * - `unnest` with several arrays cannot be qualified, and always means the function in `pg_catalog`.
 * - A plant is skipped if its idempotency key already has a record, because the plant may have been restored. The key
 *   lookup ends the deletion. The statement fails only if another process uses the key at the same time.
 * - If a trigger silently drops a record, the cast to an integer fails the statement, so that no plant is deleted
 *   without a record. The error's SQLSTATE 22P02 splits the batch until the plant is found. The error message shows the
 *   cast text.
 */
function buildStatements({ plants, deletions }: StoreSchema, hasKeys: boolean): Statements {
  const columns = ["subject", "request_id", ...(hasKeys ? [keyColumn] : [])];
  const arrays = ["$2", "$3", ...(hasKeys ? ["$5"] : [])].map(textArray);
  // The ids whose keys are unused. A deletion without a key has an empty key, which no record has.
  const unused = hasKeys
    ? `ARRAY(SELECT id FROM unnest($1::bigint[], ${textArray("$5")}) AS call (id, key)
        WHERE key <> ALL(ARRAY(SELECT ${keyColumn} FROM ${deletions} WHERE ${keysSql("$5")})))`
    : "$1::bigint[]";
  const deleteSql = (condition: string, pins = pinnedCondition): string =>
    `DELETE FROM ${plants} WHERE ${condition} AND ${pins} RETURNING id`;
  const insertSql = ([subject, requestId, key]: readonly string[]): string => {
    const keyValue = key === undefined ? "" : `, NULLIF(${key}, '')`;
    return `
    INSERT INTO ${deletions} (plant_id, batch, ${columns.join(", ")})
    SELECT deleted.id, $4::pg_catalog.uuid, ${subject}, ${requestId}${keyValue} FROM deleted`;
  };
  const recordAll = `${insertSql(columns)}
    JOIN unnest($1::bigint[], ${arrays.join(", ")}) AS call (id, ${columns.join(", ")}) USING (id)
    RETURNING plant_id`;
  return {
    deleteAll: nameStatement(`
      WITH deleted AS (${deleteSql(`id = ANY(${unused})`)}), recorded AS (${recordAll})
      SELECT coalesce(plant_id, ('a trigger drops the record of plant ' || id)::bigint)
      FROM deleted LEFT JOIN recorded ON plant_id = id`),
    deleteOne: nameStatement(`
      WITH deleted AS (${deleteSql(`id = (${unused})[1]`, pinnedByRow)}),
      recorded AS (${insertSql(arrays.map((array) => `(${array})[1]`))} RETURNING plant_id)
      SELECT coalesce((SELECT plant_id FROM recorded), ('a trigger drops the record of plant ' || id)::bigint)
      FROM deleted`),
    deleteUnlocked: `
      WITH free AS (SELECT id FROM ${plants} WHERE id = ANY(${unused}) FOR UPDATE SKIP LOCKED),
      deleted AS (${deleteSql("id = ANY(ARRAY(SELECT id FROM free))")}),
      recorded AS (${recordAll})
      SELECT plants.id, CASE
        WHEN free.id IS NULL THEN 'deferred'
        WHEN deleted.id IS NULL THEN 'protected'
        WHEN plant_id IS NULL THEN ('a trigger drops the record of plant ' || plants.id)::bigint::pg_catalog.text
        ELSE 'deleted' END
      FROM ${plants} AS plants LEFT JOIN free USING (id) LEFT JOIN deleted USING (id) LEFT JOIN recorded ON plant_id = plants.id
      WHERE plants.id = ANY($1::bigint[])`,
  };
}

const keyColumn = "idempotency_key";

const textArray = (parameter: string): string => `${parameter}::pg_catalog.text[]`;

/** Returns a condition for the records with the keys in a parameter. */
const keysSql = (parameter: string): string => `${keyColumn} = ANY(${textArray(parameter)})`;

// Finds the existing plants. Adds a row with NULL if the server has synchronous standbys.
const existingPlantsSql = ({ plants }: StoreSchema): string => `
  SELECT id FROM ${plants} WHERE id = ANY($1::bigint[]) AND ${ownRole}
  UNION ALL SELECT NULL WHERE pg_catalog.current_setting('synchronous_standby_names', true) <> ''`;

/** Writes a message to the WAL, because a transaction that writes nothing does not wait for standbys. */
export const emitMessageSql = "SELECT pg_catalog.pg_logical_emit_message(true, 'plantstore', '')";

const waitForStandbysSql = `${emitMessageSql} WHERE ${pinnedCondition}`;

/**
 * Looks up records by their idempotency keys. Uses an UPDATE that changes nothing instead of a SELECT. The UPDATE's
 * commit waits for the disk and for synchronous standbys, so the records are durable. A row without `seq` was not
 * updated, because the record is being dropped, or because a trigger has suppressed the update.
 */
export const findKeysSql = ({ deletions }: StoreSchema, condition: string, pins: string): string => `
  WITH looked AS (UPDATE ${deletions} SET batch = batch WHERE ${condition} AND ${pins} RETURNING seq)
  SELECT idempotency_key, plant_id, subject, looked.seq
  FROM ${deletions} LEFT JOIN looked USING (seq) WHERE ${condition}`;

const hasNoStandbySql = "SELECT WHERE pg_catalog.current_setting('synchronous_standby_names', true) = ''";

const noStandby =
  "has no synchronous standby (synchronous_standby_names is empty): acknowledged deletions are lost with its disk";

/** The only lane's number. Distributed stores never use this number, so the lane is unused after a distribution. */
const onlyLane = -1;

const lanes: Lanes = {
  of: () => onlyLane,
  // The store sends the next batch while one batch waits for the server's disk.
  inFlightMax: 2,
  isUsed: (lane) => lane === onlyLane,
  toRecordedCall: (call) => call,
};

/** Returns the placement for tables on a single server. The server may have standbys. */
export function singleServer(schema: StoreSchema): Placement {
  const [withoutKeys, withKeys] = [buildStatements(schema, false), buildStatements(schema, true)];
  const statementsOf = ({ keyed }: PreparedBatch): Statements => (keyed.length === 0 ? withoutKeys : withKeys);
  const findKeyRecordsSql = findKeysSql(schema, keysSql("$1"), pinnedCondition);
  const probeSql = `
    INSERT INTO ${schema.deletions} (plant_id, subject, request_id, batch)
    VALUES (0, '', '', '00000000-0000-0000-0000-000000000000')`;
  const findPlants: Placement["findPlants"] = async (session, ids) => {
    const rows = await session.query(existingPlantsSql(schema), [toArrayLiteral(ids)]);
    const existing = rows.filter(([id]) => id !== null);
    if (rows.length > existing.length) await session.query(waitForStandbysSql);
    return toIds(existing);
  };
  return {
    lanes,
    mayFailPartly: false,
    mayBeCommitted: () => false,
    deletePlants: async (session, batch) => {
      const { deleteOne, deleteAll } = statementsOf(batch);
      return toIds(await session.query(batch.firstDeletions.size === 1 ? deleteOne : deleteAll, batch.values));
    },
    deleteUnlockedPlants: async (session, batch) => {
      const rows = await session.query(statementsOf(batch).deleteUnlocked, batch.values);
      return new Map(rows.map(([id, outcome]) => [toId(id), toOutcome(outcome)]));
    },
    findPlants,
    runLookup: (session, toSql, values) => session.query(toSql(schema, pinnedCondition), values),
    waitForStandbys: async (session, missing) => void (await findPlants(session, missing)),
    findKeyRecords: (session, keyed) => session.query(findKeyRecordsSql, [keysOf(keyed)]),
    // With factor 12, dropping uses 8 % of a core, and drops 1.4 times as many records as deletions add at full load.
    // Factor 8 would lower the deletion rate by 20 %, and no pause by 25 to 50 %.
    dropPause: 12,
    dropOldRecords: (session, keptMs, slice) => dropOldRows(session, schema, keptMs, slice),
    findWarnings: async (session) => ((await session.query(hasNoStandbySql)).length === 0 ? [] : [noStandby]),
    // Does nothing, because `checkDatabase` checks the server's settings.
    checkWorkers: () => Promise.resolve(),
    checkWrite: (session) => probeWrite(session, schema, 0n, probeSql),
  };
}

/** Returns the plant ids in the first column. */
export function toIds(rows: readonly Row[]): bigint[] {
  return rows.map(([id]) => toId(id));
}

/** Returns the plant id in a NOT NULL column. */
export function toId(text: string | null | undefined): bigint {
  if (typeof text !== "string") throw new TypeError("the id of a plant is missing");
  return BigInt(text);
}

function toOutcome(text: string | null | undefined): PlantOutcome {
  if (text === "deleted" || text === "protected" || text === "deferred") return text;
  throw new TypeError(`unknown outcome of a deletion: ${text}`);
}
