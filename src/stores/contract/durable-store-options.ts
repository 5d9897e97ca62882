import type { DeleteCall } from "../../service/index.ts";
import type { OnUpkeep } from "./upkeep.ts";

/**
 * Called when a batch is sent, for metrics and traces. Must not throw.
 *
 * @returns a function to call once the batch's outcome is known, without an error if the batch is durable
 */
export type OnBatch = (calls: readonly DeleteCall[]) => (error?: unknown) => void;

/** Options for every persistent store. */
export interface DurableStoreOptions {
  /** How long deletion records are kept, in milliseconds. Default 90 days, at least an hour. */
  readonly deletionsKeptMs?: number;
  readonly onBatch?: OnBatch | undefined;
  readonly onUpkeep?: OnUpkeep | undefined;
}
