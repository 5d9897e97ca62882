import type { PendingDelete } from "../../delete-queue.ts";
import type { DeleteCall } from "../../../service/index.ts";
import type { StoreSchema } from "../schema/store-schema.ts";
import type { Row, Session } from "../server/session.ts";
import type { DeleteBatch } from "./delete-batch.ts";

/**
 * The fate of a plant that was there: `locked` by another transaction, `kept` by a trigger, or left alone because its
 * idempotency key is `used`.
 */
export type PlantFate = "deleted" | "locked" | "kept" | "used";

/**
 * Where the tables of a store are, and what differs by that: on one server, or spread over the workers of Citus. This is
 * all that the store knows of either.
 */
export interface Placement {
  /** The schema that the tables are in. */
  readonly schema: StoreSchema;
  /** Whether one worker may be lost while others go on, and a statement that is cancelled be committed by one. */
  readonly isSpread: boolean;
  /** The most batches that a worker is sent at the same time. */
  readonly inFlightMax: number;
  /** Returns the index of the worker that has a plant, -1 without workers. A batch is for plants of one worker. */
  workerOf(id: bigint): number;
  /** Returns a call with its idempotency key as records there have it. */
  toRecordedCall(call: DeleteCall, id: bigint): DeleteCall;
  /**
   * Deletes the plants of a batch and records that, in one statement, round trip and commit, after waiting for their
   * locks. Plants whose key is used are left alone if the statement can see that, and so may others be, which
   * {@link findPlants} finds there: those are for {@link deleteUnlockedPlants}. Returns the deleted ones.
   */
  deletePlants(session: Session, batch: DeleteBatch): Promise<readonly bigint[]>;
  /**
   * Does the same without waiting for the locks of others, and returns the fate of each plant that was there. An earlier
   * attempt at the batch that is still running is another transaction, too.
   */
  deleteUnlockedPlants(session: Session, batch: DeleteBatch): Promise<Map<bigint, PlantFate>>;
  /**
   * Returns which of these plants are there, once a statement has tried to delete them or others of the same batch. The
   * others are gone for good, even after a failover.
   *
   * A plant may be gone on its server only: a deletion becomes visible before the standbys have it when its backend is
   * ended while it waits for them, or the server restarts. So the answer waits for a commit of its own, which the
   * standbys cannot have without all earlier ones.
   */
  findPlants(session: Session, ids: readonly bigint[]): Promise<readonly bigint[]>;
  /**
   * Runs a lookup whose commit is an acknowledgement, with the settings pinned that its durability depends on.
   *
   * @param toSql - returns the statement, with a condition in its WHERE that always holds
   */
  lookUp(session: Session, toSql: (condition: string) => string, values: readonly unknown[]): Promise<readonly Row[]>;
  /** Waits until these plants, which are not there, are gone for good although no statement could delete anything. */
  waitForStandbys(session: Session, missing: readonly bigint[]): Promise<void>;
  /** Returns key, plant, subject and, if they are durable, `seq` of the records with the keys of these deletions. */
  findKeyRecords(session: Session, keyed: readonly PendingDelete[]): Promise<readonly Row[]>;
  /**
   * How long to rest after a slice of old records while there are deletions, which it slows down: a multiple of the
   * time that the slice took. Zero where dropping could then fall behind them.
   */
  readonly dropRest: number;
  /** The partitions of deletion records by day; `undefined` where these are in one table. */
  readonly days: RecordDays | undefined;
  /**
   * Deletes a slice of the deletion records outside of days that are older than `keptMs` by the clock of the database,
   * the oldest first, in one transaction.
   */
  dropOldRecords(session: Session, keptMs: number, slice: Slice): Promise<Dropped>;
  /** Checks, without a write, that deletions would be durable on each worker that can be reached. */
  checkWorkers(session: Session): Promise<void>;
  /**
   * Checks that a deletion could be committed now, which only a write can show: a full disk, a locked table or a missing
   * synchronous standby does not affect reads. Rejects with the fault; then discard the session.
   */
  checkWrite(session: Session): Promise<void>;
}

/** The partitions of deletion records by day. */
export interface RecordDays {
  /** Makes those of the next days, for records that are kept for so long. */
  make(session: Session, keptMs: number): Promise<void>;
  /** Drops a day, the last record of which is older than `keptMs` by the clock of the database. */
  dropOld(session: Session, keptMs: number): Promise<Dropped>;
}

/** Some of the old deletion records. */
export interface Slice {
  /** The most of them. */
  readonly max: number;
  /** The {@link Dropped.reachedUs} of the slice before. */
  readonly fromUs?: number | undefined;
}

/** The deletion records that one statement has dropped. */
export interface Dropped {
  /** How many; of a large day, about. */
  readonly count: number;
  /** Whether there may be more to drop. */
  readonly isMore: boolean;
  /** When the next slice begins, in µs since 1970, if not with the oldest record. */
  readonly reachedUs?: number;
}
