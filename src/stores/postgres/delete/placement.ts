import type { Deletion, EndingKind } from "../../contract/deletion.ts";
import type { Lanes } from "../../contract/backend.ts";
import type { StoreSchema } from "../schema/store-schema.ts";
import type { Row, Session } from "../server/session.ts";
import type { PreparedBatch } from "./prepared-batch.ts";

/**
 * The fate of an existing plant: its deletion ends as `deleted` or `protected`, or is `deferred`, because another
 * transaction has locked the plant, or its idempotency key is used.
 */
export type PlantFate = Extract<EndingKind, "deleted" | "protected"> | "deferred";

/** Where a store's tables are, on one server or over workers, with the operations that depend on it. */
export interface Placement {
  readonly schema: StoreSchema;
  /** The servers that have plants. A batch is for one server's plants. */
  readonly lanes: Lanes;
  /** Whether a server may be unavailable while others delete. Readiness does not depend on a single one of them. */
  readonly mayFailPartly: boolean;
  /** Why the store cannot be moved to another one, for an operator, or `undefined` if it can be. */
  readonly moveProblem?: string;
  /** Returns whether a statement may have been committed although its error means that it did nothing. */
  mayBeCommitted(fault: unknown): boolean;
  /**
   * Deletes a batch's plants and inserts their records, in one statement, round trip and commit, after waiting for
   * their locks. Returns the deleted plants. Plants whose key is visibly used are skipped. Others may be skipped, too:
   * {@link findPlants} finds them, and {@link deleteUnlockedPlants} deletes them.
   */
  deletePlants(session: Session, batch: PreparedBatch): Promise<readonly bigint[]>;
  /**
   * Does the same without waiting for other transactions' locks, which include an earlier attempt at the same batch
   * that is still running. Returns each existing plant's fate.
   */
  deleteUnlockedPlants(session: Session, batch: PreparedBatch): Promise<Map<bigint, PlantFate>>;
  /**
   * Returns which of these plants exist, after a statement has tried to delete them or others in the same batch. The
   * rest are deleted permanently, even after a failover.
   *
   * A deletion may be visible on its server before the standbys have it, if its backend is terminated while waiting for
   * them, or the server restarts. So this waits for another commit. Standbys that have it also have all earlier ones.
   */
  findPlants(session: Session, ids: readonly bigint[]): Promise<readonly bigint[]>;
  /**
   * Runs a lookup whose commit makes the result durable, with the settings pinned that durability depends on.
   *
   * @param toSql - returns the statement. Its WHERE must contain the condition, which is always true
   */
  runLookup(
    session: Session,
    toSql: (condition: string) => string,
    values: readonly unknown[],
  ): Promise<readonly Row[]>;
  /** Waits until the standbys have the deletions of plants that do not exist, and that the batch has not deleted. */
  waitForStandbys(session: Session, missing: readonly bigint[]): Promise<void>;
  /** Returns key, plant, subject and, if durable, `seq` from the records with these deletions' keys. */
  findKeyRecords(session: Session, keyed: readonly Deletion[]): Promise<readonly Row[]>;
  /**
   * How long to pause after dropping a slice of expired records during deletions, as a multiple of the slice's
   * duration. Zero if, with pauses, records could be added faster than they are dropped.
   */
  readonly dropPause: number;
  /** The day partitions for deletion records, or `undefined` if all records are in one table. */
  readonly days: RecordDays | undefined;
  /**
   * Deletes a slice of deletion records outside day partitions that are older than `keptMs` by the database's clock,
   * the oldest first, in one transaction.
   */
  dropOldRecords(session: Session, keptMs: number, slice: Slice): Promise<Dropped>;
  /** Returns warnings about how durable deletions are, as clauses for an operator. */
  findWarnings(session: Session): Promise<readonly string[]>;
  /** Checks, without a write, that deletions would be durable on each reachable worker. */
  checkWorkers(session: Session): Promise<void>;
  /**
   * Checks that a deletion could be committed now. This requires a write, because a full disk, a locked table or a
   * missing synchronous standby does not affect reads. If it rejects, discard the session.
   */
  checkWrite(session: Session): Promise<void>;
}

/** The day partitions for deletion records. */
export interface RecordDays {
  /** Creates the partitions of the next days. */
  make(session: Session): Promise<void>;
  /** Drops a day whose records are all older than `keptMs` by the database's clock. */
  dropOld(session: Session, keptMs: number): Promise<Dropped>;
}

/** A slice of the expired deletion records: at most `max` of them. */
export interface Slice {
  readonly max: number;
  /** The previous slice's {@link Dropped.reachedTimeUs}. */
  readonly fromUs?: number | undefined;
}

/** The deletion records that one statement has dropped. */
export interface Dropped {
  /** How many records were dropped, estimated for a large day. */
  readonly count: number;
  /** Whether there may be more to drop. */
  readonly isMore: boolean;
  /** Where the next slice starts, in µs since 1970. By default at the oldest record. */
  readonly reachedTimeUs?: number;
}
