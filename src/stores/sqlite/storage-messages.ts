import type { StoreProblem } from "../store-health.ts";
import type { Upkeep } from "../upkeep.ts";
import type { DatabaseOptions } from "./database.ts";
import type { BatchResult, DeleteBatch } from "./delete-batch.ts";

/** A request to the storage thread. The first one is `open`; after `close` the thread exits. */
export type StorageRequest =
  | { readonly kind: "open"; readonly options: DatabaseOptions }
  | { readonly kind: "deleteBatch"; readonly batch: DeleteBatch }
  /** Checks whether the file can be written. */
  | { readonly kind: "checkWrite" }
  | { readonly kind: "close" };

/**
 * A message of the thread: a reply to each request; upkeep at any time; and `checking` before the reply to `open` if
 * the thread has to check the file.
 */
export type StorageReply =
  | { readonly kind: "checking" }
  | { readonly kind: "open" }
  | { readonly kind: "not-open"; readonly message: string }
  | { readonly kind: "ran"; readonly result: BatchResult }
  | { readonly kind: "checked"; readonly problem: StoreProblem | undefined }
  | { readonly kind: "upkeep"; readonly upkeep: Upkeep };
