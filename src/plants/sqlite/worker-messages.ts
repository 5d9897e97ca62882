import type { DatabaseOptions } from "./database.ts";
import type { BatchResult, DeleteBatch } from "./delete-batch.ts";
import type { StoreProblem } from "../health.ts";

/** What the thread is started with. */
export interface StorageThreadData {
  readonly options: DatabaseOptions;
  /** Where it sleeps until it is asked. */
  readonly doorbell: SharedArrayBuffer;
}

/** What the store asks of its thread, one question at a time. `close` is answered by the thread's end. */
export type Question =
  | { readonly kind: "delete"; readonly batch: DeleteBatch }
  | { readonly kind: "try-to-write" }
  | { readonly kind: "close" };

/** What the thread says: first whether the file is open, then an answer to each question. */
export type Reply =
  | { readonly kind: "open" }
  | { readonly kind: "not-open"; readonly message: string }
  | { readonly kind: "deleted"; readonly result: BatchResult }
  | { readonly kind: "tried"; readonly problem: StoreProblem | undefined };
