import type { Log } from "@plantstore/telemetry/logs";
import type { PlantErrorCode, PlantStore } from "../service/index.ts";

/** Milliseconds between two looks at the store. Its callers are refused meanwhile, so it need not be seen sooner. */
const lookIntervalMs = 500;

/** A watch for a fault of the store that only a restart can mend. */
export interface BreakdownWatch {
  /** Resolves when there is such a fault, once it is logged. */
  readonly breakdown: Promise<void>;
  /** Ends the watch. */
  stop(): void;
}

/** Watches a store for a fault that lasts as long as the process. It does not keep the process alive. */
export function watchBreakdown(store: PlantStore, log: Pick<Log, "fatal">): BreakdownWatch {
  const { promise: breakdown, resolve } = Promise.withResolvers<void>();
  const look = (): void => {
    if (store.needsRestart !== true) return;
    clearInterval(timer);
    const errorCode: PlantErrorCode = "ERR_STORE_FAILED";
    log.fatal({ errorCode, problem: store.problem }, "the store has failed; restart the server");
    resolve();
  };
  const timer = setInterval(look, lookIntervalMs).unref();
  return { breakdown, stop: () => clearInterval(timer) };
}
