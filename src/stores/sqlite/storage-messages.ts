import type { Upkeep } from "../upkeep.ts";
import type { DatabaseOptions } from "./database.ts";

/**
 * A request to the storage thread. The first one is `open`; after `close` the thread exits. For each other kind, `Work`
 * has a function with at most one parameter, whose result is the reply.
 */
export type StorageRequest<Work> =
  | { readonly kind: "open"; readonly options: DatabaseOptions }
  | { readonly kind: "close" }
  | { readonly [Kind in keyof Work]: { readonly kind: Kind; readonly value: ValueOf<Work[Kind]> } }[keyof Work];

type ValueOf<Run> = Run extends () => unknown ? undefined : Run extends (value: infer Value) => unknown ? Value : never;

/**
 * A message of the thread: a reply to each request; upkeep at any time; and `checking` before the reply to `open` if
 * the thread has to check the file.
 */
export type StorageReply<Result> =
  | { readonly kind: "checking" }
  | { readonly kind: "open" }
  | { readonly kind: "not-open"; readonly message: string }
  | { readonly kind: "done"; readonly result: Result }
  | { readonly kind: "upkeep"; readonly upkeep: Upkeep };
