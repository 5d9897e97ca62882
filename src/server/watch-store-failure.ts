import type { Log } from "@protoport/telemetry/logs";
import type { PlantErrorCode, PlantStore } from "../service/index.ts";

// Interval between checks of the store, in milliseconds. Long, because a failed store already refuses calls.
const checkIntervalMs = 500;

/** A watch for a store failure that only a restart can fix. */
export interface StoreFailureWatch {
  /** Resolves after the store's failure has been logged. */
  readonly storeFailed: Promise<void>;
  /** Stops the watch. */
  stop(): void;
}

/** Watches a store for a failure that only a restart can fix. Does not keep the process alive. */
export function watchStoreFailure(store: PlantStore, log: Pick<Log, "fatal">): StoreFailureWatch {
  const { promise: storeFailed, resolve } = Promise.withResolvers<void>();
  const check = (): void => {
    if (store.needsRestart !== true) return;
    clearInterval(timer);
    const errorCode: PlantErrorCode = "ERR_STORE_FAILED";
    log.fatal({ errorCode, problem: store.problem }, "the store has failed; restart the server");
    resolve();
  };
  const timer = setInterval(check, checkIntervalMs).unref();
  return { storeFailed, stop: () => clearInterval(timer) };
}
