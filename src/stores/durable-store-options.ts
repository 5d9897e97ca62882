import type { DeleteCall } from "../service/index.ts";
import type { OnUpkeep } from "./upkeep.ts";

/**
 * Called for every batch when it is sent, for metrics and traces. Must not throw.
 *
 * @returns a function that is called once the outcome of the batch is known: without an error when it is durable
 */
export type OnBatch = (calls: readonly DeleteCall[]) => (error?: unknown) => void;

/** Options of every store that outlives its process. */
export interface DurableStoreOptions {
  /** How long deletion records are kept, in milliseconds. Default 90 days, an hour at least. */
  readonly deletionsKeptMs?: number;
  readonly onBatch?: OnBatch | undefined;
  readonly onUpkeep?: OnUpkeep | undefined;
}
