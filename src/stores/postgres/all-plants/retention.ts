import { setTimeout as sleep } from "node:timers/promises";
import { retentionIntervalMs, type OnUpkeep, reportDropped } from "../../contract/store-options.ts";
import { problemOf } from "../delete/fault-table.ts";
import type { Dropped, StoreTables } from "../delete/store-tables.ts";
import type { Session } from "../server/session.ts";

// Maximum number of rows per transaction. A slice takes some ten milliseconds and writes up to 5 MB to the WAL, which
// does not delay a standby. Smaller slices are slower, because each slice waits for the disk.
const maxSlice = 20_000;

/** Options for {@link startRetention}. */
export interface RetentionOptions {
  readonly keptMs: number;
  /** Returns the tables with the records. */
  readonly tablesOn: (session: Session) => Promise<StoreTables>;
  /** Returns whether plants were deleted since a `performance.now()` time. If so, retention pauses. Default never. */
  readonly hasDeletedSince?: (timeMs: number) => boolean;
  readonly onUpkeep?: OnUpkeep | undefined;
}

/** A job that drops expired deletion records. */
export interface Retention {
  /** Stops and cancels the running statement, even on a hung server. Resolves once all confirmed drops are reported. */
  stop(): Promise<void>;
}

/** Drops records immediately, and then every {@link retentionIntervalMs}. The retention owns the session. */
export function startRetention(session: Session, options: RetentionOptions): Retention {
  const { keptMs, tablesOn, hasDeletedSince, onUpkeep } = options;
  const stopping = new AbortController();
  const drop = async (): Promise<void> => {
    const begunMs = performance.now();
    let count = 0;
    let problem: string | undefined;
    try {
      // The loop ends when the session is closed, because a closed session rejects the slice.
      for (let slice: Dropped = { count: 0, isMore: true }; slice.isMore;) {
        const sliceBegunMs = performance.now();
        const tables = await tablesOn(session);
        slice = await tables.dropOldRecords(session, keptMs, { max: maxSlice, fromUs: slice.reachedTimeUs });
        count += slice.count;
        const pauseMs = (performance.now() - sliceBegunMs) * tables.dropPause;
        if (slice.isMore && hasDeletedSince?.(sliceBegunMs) === true)
          await sleep(pauseMs, undefined, { signal: stopping.signal });
      }
    } catch (fault) {
      // Only reports the error, because a problem with the server also fails the next batch.
      if (!stopping.signal.aborted) problem = problemOf(fault).text;
    }
    reportDropped(onUpkeep, count, begunMs, problem);
    // Closes the connection, which is not needed until the next interval.
    session.discard();
  };
  let dropping = drop();
  const timer = setInterval(() => void (dropping = dropping.then(drop)), retentionIntervalMs).unref();
  return {
    stop: async () => {
      stopping.abort();
      clearInterval(timer);
      await session.close();
      await dropping;
    },
  };
}
