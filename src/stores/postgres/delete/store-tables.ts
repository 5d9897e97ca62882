import type { Lanes, Requested } from "../../contract/backend.ts";
import type { Row, Session } from "../server/session.ts";
import type { Verdict } from "./fault-table.ts";

/** The statements that depend on the location of a store's tables: a single server, or Citus' workers. */
export interface StoreTables {
  readonly lanes: Lanes;
  /** Whether other servers can delete while one server is unavailable. If so, the store is ready if any server is. */
  readonly mayFailPartly: boolean;
  /** Whether an idempotency key belongs to one plant, so that another plant with the key is another deletion. */
  readonly hasKeysPerPlant: boolean;
  /** Why the store cannot be moved, for an operator. Undefined if the store can be moved. */
  readonly moveProblem?: string;
  /** Returns the verdict on an error of {@link deletePlants}. */
  verdictOn(fault: unknown): Verdict;
  /**
   * Deletes and records, in one transaction, the plants that are not locked and whose idempotency key is unused. The
   * calls have different plants and different keys. Fails with 22P02 if a trigger drops a record, or keeps one of
   * several plants without an error.
   */
  deletePlants(session: Session, calls: readonly Requested[], token: string): Promise<Deleted>;
  /**
   * Finds out why plants were not deleted, and waits until the answer is on the synchronous standbys. Returns rows of
   * plant, key, subject and token: one with NULLs for each plant that exists, and one for each record with a key of the
   * calls, or with a token. If a plant is missing, its last record is visible, too.
   */
  findWhy(session: Session, calls: readonly Requested[], tokens: string): Promise<readonly Row[]>;
  /** Returns whether a plant exists, and no other transaction has locked it. */
  isFree(session: Session, id: bigint): Promise<boolean>;
  /** The pause after dropping a slice of records during deletions, as a multiple of the slice's duration. */
  readonly dropPause: number;
  /** Drops a slice of records older than `keptMs`, oldest first, in one transaction. */
  dropOldRecords(session: Session, keptMs: number, slice: Slice): Promise<Dropped>;
  /** Returns warnings about the durability of deletions, as clauses for an operator. */
  findWarnings(session: Session): Promise<readonly string[]>;
  /**
   * Checks with a write that a deletion could be committed now. A full disk, a locked table or a missing synchronous
   * standby does not affect reads. If the check rejects, discard the session.
   */
  checkWrite(session: Session): Promise<void>;
}

/** What {@link StoreTables.deletePlants} has done. */
export interface Deleted {
  /** The deleted plants' ids. */
  readonly ids: ReadonlySet<string>;
  /** Whether a trigger has kept the only plant without an error. */
  readonly isKept: boolean;
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
