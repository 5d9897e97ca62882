import type { Deletion } from "./deletion.ts";
import type { Lanes, Outcome } from "../../contract/backend.ts";
import type { StoreSchema } from "../schema/store-schema.ts";
import type { Row, Session } from "../server/session.ts";
import type { PreparedBatch } from "./prepared-batch.ts";

/** The outcome for an existing plant. `deferred`: another transaction has locked the plant or used the key. */
export type PlantOutcome = Extract<Outcome, "deleted" | "protected"> | "deferred";

/** The operations that depend on the location of a store's tables: a single server, or several workers. */
export interface Placement {
  /** A lane for each server with plants. */
  readonly lanes: Lanes;
  /** Whether other servers can delete while one server is unavailable. If so, the store is ready if any server is. */
  readonly mayFailPartly: boolean;
  /** Why the store cannot be moved, for an operator. Undefined if the store can be moved. */
  readonly moveProblem?: string;
  /** Returns whether a statement may have been committed, although its error usually means a rollback. */
  mayBeCommitted(fault: unknown): boolean;
  /**
   * Deletes a batch's plants and inserts their records, in one statement and one commit. Waits for locks on the plants.
   * Returns the deleted plants. Skips a plant if its idempotency key is visibly used. May skip further plants:
   * {@link findPlants} finds skipped plants, and {@link deleteUnlockedPlants} deletes skipped plants.
   */
  deletePlants(session: Session, batch: PreparedBatch): Promise<readonly bigint[]>;
  /** Like {@link deletePlants}, but does not wait for locks. Returns the outcome for each existing plant. */
  deleteUnlockedPlants(session: Session, batch: PreparedBatch): Promise<Map<bigint, PlantOutcome>>;
  /**
   * Returns the existing plants among `ids`. Call this after a statement that deletes plants in the same batch. Plants
   * that are not returned are deleted durably, even after a failover.
   *
   * If a server restarts, or terminates a backend that waits for standbys, a deletion may be visible but not yet on the
   * standbys. So this method waits for another commit. A standby with the other commit also has all earlier commits.
   */
  findPlants(session: Session, ids: readonly bigint[]): Promise<readonly bigint[]>;
  /**
   * Runs a lookup whose commit makes the result durable. Pins the settings on which durability depends.
   *
   * @param toSql - returns the statement. The statement's WHERE must contain `condition`, which is always true
   */
  runLookup(
    session: Session,
    toSql: (schema: StoreSchema, condition: string) => string,
    values: readonly unknown[],
  ): Promise<readonly Row[]>;
  /** Waits until the standbys have earlier deletions of missing plants. */
  waitForStandbys(session: Session, missing: readonly bigint[]): Promise<void>;
  /** Returns key, plant, subject and `seq` from the records with these keys. `seq` is NULL if not durable. */
  findKeyRecords(session: Session, keyed: readonly Deletion[]): Promise<readonly Row[]>;
  /**
   * The pause after dropping a slice of expired records during deletions, as a multiple of the slice's duration. The
   * factor is 0 if pauses could make retention slower than deletions.
   */
  readonly dropPause: number;
  /** Drops a slice of records older than `keptMs`, oldest first, in one transaction. */
  dropOldRecords(session: Session, keptMs: number, slice: Slice): Promise<Dropped>;
  /** Returns warnings about the durability of deletions, as clauses for an operator. */
  findWarnings(session: Session): Promise<readonly string[]>;
  /** Checks that deletions would be durable on each reachable worker. Does not write. */
  checkWorkers(session: Session): Promise<void>;
  /**
   * Checks with a write that a deletion could be committed now. A full disk, a locked table or a missing synchronous
   * standby does not affect reads. If the check rejects, discard the session.
   */
  checkWrite(session: Session): Promise<void>;
}

/** A slice of the expired deletion records. `max` is the maximum number of records. */
export interface Slice {
  readonly max: number;
  /** {@link Dropped.reachedTimeUs} of the previous slice. */
  readonly fromUs?: number | undefined;
}

/** The result of dropping a slice. */
export interface Dropped {
  readonly count: number;
  /** Whether more expired records may remain. */
  readonly isMore: boolean;
  /** The time at which the next slice starts, in µs since 1970. By default, the time of the oldest record. */
  readonly reachedTimeUs?: number;
}
