import { type Lanes, type Requested, toStorableText } from "../../contract/backend.ts";
import type { StoreSchema } from "../schema/store-schema.ts";
import { beginSql, readCommitted } from "../server/pinned-settings.ts";
import type { TextRow, Session } from "../server/session.ts";
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
   * several plants without an error. Returns the ids of the deleted plants, and whether a trigger has kept the only
   * plant without an error.
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
