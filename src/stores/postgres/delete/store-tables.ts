import { randomUUID } from "node:crypto";
import { escapeLiteral } from "pg";
import { type Lanes, type Requested, toStorableText } from "../../contract/backend.ts";
import type { StoreSchema } from "../schema/store-schema.ts";
import { beginSql, hiddenRows, pinnedCondition, readCommitted } from "../server/pinned-settings.ts";
import {
  nameStatement,
  otherResponse,
  type Session,
  type SessionTimeouts,
  type Statement,
  type TextRow,
} from "../server/session.ts";
import { type Verdict, verdictOn } from "./fault-table.ts";

/** The statements that depend on the location of a store's tables: a single server, or Citus' workers. */
export interface StoreTables {
  readonly lanes: Lanes;
  /**
   * Whether the tables are distributed over several servers. Then others can delete while one is unavailable, an
   * idempotency key applies to one plant, and the store cannot be moved.
   */
  readonly isDistributed: boolean;
  /** Returns the verdict on an error of {@link deletePlants}. */
  verdictOn(fault: unknown): Verdict;
  /**
   * Deletes and records, in one transaction, the plants that are not locked and whose idempotency key is unused. The
   * calls have different plants and different keys. Fails with 22P02 if a trigger drops a record, or keeps one of
   * several plants without an error, and without a code if the response belongs to another statement. Returns the ids
   * of the deleted plants, and whether a trigger has kept the only plant without an error.
   */
  deletePlants(session: Session, calls: readonly Requested[], token: string): Promise<Deleted>;
  /**
   * Finds out why plants were not deleted, and waits until the answer is on the synchronous standbys. Returns rows of
   * plant, key, subject and token: one with NULLs for each plant that exists, and one for each record with a key of the
   * calls, or with a token. If a plant is missing, its last record is visible, too.
   */
  findWhy(session: Session, calls: readonly Requested[], tokens: string): Promise<readonly TextRow[]>;
  readonly schema: StoreSchema;
  /** The pause after dropping a slice of records during deletions, as a multiple of the slice's duration. */
  readonly dropPause: number;
  /** Returns warnings about the durability of deletions, as clauses for an operator, if they are known. */
  findWarnings?(session: Session): Promise<readonly string[]>;
  /**
   * Checks with a write that a deletion could be committed now. A full disk, a locked table or a missing synchronous
   * standby does not affect reads.
   */
  checkWrite(session: Session): Promise<void>;
}

/** What {@link StoreTables.deletePlants} has done. */
export interface Deleted {
  readonly ids: ReadonlySet<string>;
  readonly isKept: boolean;
}

/** The timeouts for deletions. A batch normally holds locks for a few milliseconds. */
export const deleteTimeouts: SessionTimeouts = {
  lockTimeoutMs: 100,
  statementTimeoutMs: 5_000,
  responseTimeoutMs: 7_000,
};

// Pins the settings, and fails if row security may hide rows from the current role (the setting is unknown).
const pinsOf = ({ plants, deletions }: StoreSchema): string => `${pinnedCondition} AND (SELECT
    pg_catalog.set_config('lock_timeout', '${deleteTimeouts.lockTimeoutMs}', true)
    || CASE WHEN ${[plants, deletions].map((table) => `pg_catalog.row_security_active(${escapeLiteral(table)})`).join(" OR ")}
      THEN pg_catalog.current_setting('${hiddenRows}') ELSE '' END) IS NOT NULL`;

const textArray = (parameter: string): string => `${parameter}::pg_catalog.text[]`;

/**
 * Returns the statement for one plant or several, with or without idempotency keys. Each column is an array parallel to
 * the ids. `unnest` with several arrays cannot be qualified, and always means the function in `pg_catalog`.
 *
 * - SKIP LOCKED keeps a locked plant from delaying the others, and batches of several processes from a deadlock.
 * - Several plants are deleted by the location of their rows, which is 10 % faster. A row that another transaction has
 *   updated meanwhile is missed, and the statement fails. A plant alone is deleted by its id. In inherited or partitioned
 *   tables, a location names rows of several tables, so plants are deleted by their ids. ONLY keeps the statement within
 *   one table even if the table has just become inherited.
 * - A plant is skipped if its idempotency key already has a record, because the plant may have been restored.
 * - If a trigger drops a record, or keeps one of several plants, the cast to an integer fails the statement.
 * - The result has the token, because a pooler may respond with the result of an earlier statement.
 */
function deleteSql(schema: StoreSchema, isLone: boolean, hasKeys: boolean, isInherited: boolean): Statement {
  const { plants, deletions } = schema;
  const used = `SELECT idempotency_key FROM ${deletions} WHERE idempotency_key = ANY(${textArray("$5")})`;
  const unused = `ARRAY(SELECT id FROM unnest($1::bigint[], ${textArray("$5")}) AS call (id, key) WHERE key <> ALL(ARRAY(${used})))`;
  const [row, table] = isLone || isInherited ? ["id", plants] : ["ctid", `ONLY ${plants}`];
  const columns = ["subject", "request_id", ...(hasKeys ? ["key"] : [])];
  const arrays = ["$2", "$3", ...(hasKeys ? ["$5"] : [])].map(textArray);
  const [subject, requestId, key] = isLone ? arrays.map((array) => `(${array})[1]`) : columns;
  const calls = isLone
    ? ""
    : `JOIN unnest($1::bigint[], ${arrays.join(", ")}) AS call (id, ${columns.join(", ")}) USING (id)`;
  return nameStatement(`
    WITH free AS MATERIALIZED (
      SELECT ${row} AS place FROM ${table} WHERE id = ANY(${hasKeys ? unused : "$1::bigint[]"}) AND ${pinsOf(schema)}
      FOR UPDATE SKIP LOCKED),
    gone AS (DELETE FROM ${table} WHERE ${row} = ANY(ARRAY(SELECT place FROM free)) RETURNING id),
    recorded AS (
      INSERT INTO ${deletions} (plant_id, subject, request_id, batch${hasKeys ? ", idempotency_key" : ""})
      SELECT id, ${subject}, ${requestId}, $4::pg_catalog.uuid${hasKeys ? `, NULLIF(${key}, '')` : ""} FROM gone ${calls}
      RETURNING plant_id)
    SELECT deleted::pg_catalog.text, free > gone,
      CASE WHEN gone > coalesce(pg_catalog.cardinality(deleted), 0) OR (free > gone AND ${!isLone})
        THEN ('a trigger keeps a plant or drops its record; deleted: ' || gone)::bigint END, $4::pg_catalog.uuid
    FROM (SELECT (SELECT pg_catalog.array_agg(plant_id) FROM recorded) AS deleted,
      (SELECT pg_catalog.count(*) FROM gone) AS gone, (SELECT pg_catalog.count(*) FROM free) AS free) AS counts`);
}

/** Writes a message to the WAL, because a transaction that writes nothing does not wait for standbys. */
export const emitMessageSql = "SELECT pg_catalog.pg_logical_emit_message(true, 'plantstore', '')";

// One statement reads one snapshot. The subquery runs once, if the server has synchronous standbys.
const whySql = (schema: StoreSchema): Statement =>
  nameStatement(`
    SELECT id, key, subject, batch,
      (${emitMessageSql} WHERE pg_catalog.current_setting('synchronous_standby_names', true) <> '')
    FROM (
      SELECT id, NULL AS key, NULL AS subject, NULL::pg_catalog.uuid AS batch FROM ${schema.plants}
      WHERE id = ANY($1::bigint[])
      UNION ALL SELECT plant_id, idempotency_key, subject, batch FROM ${schema.deletions}
      WHERE idempotency_key = ANY($2::pg_catalog.text[])
      UNION ALL SELECT plant_id, idempotency_key, subject, batch FROM ${schema.deletions}
      WHERE plant_id = ANY($1::bigint[]) AND batch = ANY($3::pg_catalog.uuid[])
      UNION ALL SELECT NULL, NULL, NULL, $4::pg_catalog.uuid) AS found
    WHERE ${pinsOf(schema)}`);

const hasNoStandbySql = "SELECT WHERE pg_catalog.current_setting('synchronous_standby_names', true) = ''";

const noStandby =
  "has no synchronous standby (synchronous_standby_names is empty): acknowledged deletions are lost with its disk";

/** Returns the tables on a single server. The server may have standbys. @param isInherited - whether `plants` is */
export function singleServer(schema: StoreSchema, isInherited = false): StoreTables {
  // By whether there is one plant, and whether there are keys.
  const statements = [false, true].map((isLone) =>
    [false, true].map((hasKeys) => deleteSql(schema, isLone, hasKeys, isInherited)),
  );
  const why = whySql(schema);
  const probeSql = `
    INSERT INTO ${schema.deletions} (plant_id, subject, request_id, batch)
    VALUES (0, '', '', '00000000-0000-0000-0000-000000000000')`;
  return {
    // The store sends the next batch while one batch waits for the server's disk. No worker of Citus has the lane -1.
    lanes: { of: () => -1, maxInFlight: 2 },
    isDistributed: false,
    schema,
    verdictOn,
    deletePlants: async (session, calls, token) => {
      const hasKeys = calls.some(({ call }) => call.idempotencyKey !== undefined);
      const texts = [calls.map(({ call }) => call.subject), calls.map(({ call }) => call.requestId)];
      const values = [idsOf(calls), ...texts.map(toArrayLiteral), token, ...(hasKeys ? [keysOf(calls)] : [])];
      const statement = statements[calls.length === 1 ? 1 : 0]?.[hasKeys ? 1 : 0] ?? "";
      const [[deleted, isKept, , returned] = []] = await session.query(statement, values);
      if (returned !== token) throw otherResponse();
      return { ids: new Set(parseIdArray(deleted)), isKept: isKept === "t" };
    },
    findWhy: async (session, calls, tokens) => {
      const token = randomUUID();
      const rows = await session.query(why, [idsOf(calls), keysOf(calls), tokens, token]);
      if (!rows.some(([id, , , returned]) => id === null && returned === token)) throw otherResponse();
      return rows.filter(([id]) => id !== null);
    },
    // With factor 12, dropping uses 8 % of a core, and drops 1.4 times as many records as deletions add at full load.
    // Factor 8 would lower the deletion rate by 20 %, and no pause by 25 to 50 %.
    dropPause: 12,
    findWarnings: async (session) => ((await session.query(hasNoStandbySql)).length === 0 ? [] : [noStandby]),
    checkWrite: (session) => probeWrite(session, schema, 0n, probeSql),
  };
}

/** Returns the ids as `bigint[]`. */
export function idsOf(calls: readonly Requested[]): string {
  return toArrayLiteral(calls.map(({ id }) => id));
}

/** Returns idempotency keys as `text[]`, "" for none. NULL would become "NULL" with `array_nulls = off`. */
export function keysOf(calls: readonly Requested[]): string {
  return toArrayLiteral(calls.map(({ call }) => call.idempotencyKey ?? ""));
}

/** Returns a PostgreSQL array literal (postgresql.org/docs/current/arrays.html#ARRAYS-IO). Texts become storable. */
export function toArrayLiteral(elements: readonly (string | bigint)[]): string {
  return `{${elements.map((element) => (typeof element === "bigint" ? element : quote(element))).join()}}`;
}

function quote(text: string): string {
  const storable = toStorableText(text);
  // `test` is several times faster than a `replaceAll` without a match.
  return `"${/["\\]/.test(storable) ? storable.replaceAll(/["\\]/g, "\\$&") : storable}"`;
}

/** Returns the ids in an array literal, as strings. Returns an empty array for NULL. */
export function parseIdArray(array: string | null = null): readonly string[] {
  return array === null || array === "{}" ? [] : array.slice(1, -1).split(",");
}

/**
 * Checks with a write that a plant could be deleted. Requires what a deletion requires: locks on both tables, disk space
 * for a record, and a commit that waits for the disk and for synchronous standbys. Changes no data, because the record is
 * rolled back. The DELETE matches no row and locks the table. LOCK TABLE is not used, because Citus would run it on every
 * worker. A single message contains the whole transaction, so that its locks end even if this process hangs.
 */
export async function probeWrite(
  session: Session,
  { plants }: StoreSchema,
  id: bigint,
  recordSql: string,
): Promise<void> {
  const lockSql = `DELETE FROM ${plants} WHERE id = ${id} AND id <> ${id}`;
  try {
    await session.run(
      `${beginSql(readCommitted)}; ${lockSql}; SAVEPOINT probe; ${recordSql}; ROLLBACK TO SAVEPOINT probe; COMMIT`,
    );
  } catch (fault) {
    session.discard();
    // A trigger or constraint refuses only the probe's record, so the store is healthy.
    if (verdictOn(fault) !== "refused") throw fault;
  }
}
