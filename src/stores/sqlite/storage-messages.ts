import type { StoreProblem } from "../store-health.ts";
import type { Upkeep } from "../upkeep.ts";
import type { DatabaseOptions } from "./database.ts";
import type { BatchResult, DeleteBatch } from "./delete-batch.ts";

/** A question of the store. The first one is `open`; the answer to `close` is the end of the thread. */
export type Question =
  | { readonly kind: "open"; readonly options: DatabaseOptions }
  | { readonly kind: "delete"; readonly batch: DeleteBatch }
  | { readonly kind: "try-to-write" }
  | { readonly kind: "close" };

/** A message of the thread: a reply to each question, upkeep at any time, and before it is open whether it checks the file. */
export type Reply =
  | { readonly kind: "checking" }
  | { readonly kind: "open" }
  | { readonly kind: "not-open"; readonly message: string }
  | { readonly kind: "deleted"; readonly result: BatchResult }
  | { readonly kind: "tried"; readonly problem: StoreProblem | undefined }
  | { readonly kind: "upkeep"; readonly upkeep: Upkeep };
