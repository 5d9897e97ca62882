import type { Upkeep } from "../upkeep.ts";
import type { DatabaseOptions } from "./database.ts";

/**
 * A question of the store. The first one is `open`; the response to `close` is the end of the thread. `Work` has a
 * function for each of the others, with one parameter at most, and its result is the reply.
 */
export type Question<Work> =
  | { readonly kind: "open"; readonly options: DatabaseOptions }
  | { readonly kind: "close" }
  | { readonly [Kind in keyof Work]: { readonly kind: Kind; readonly value: ValueOf<Work[Kind]> } }[keyof Work];

type ValueOf<Run> = Run extends () => unknown ? undefined : Run extends (value: infer Value) => unknown ? Value : never;

/** A message of the thread: a reply to each question, upkeep at any time, and before it is open whether it checks the file. */
export type Reply<Result> =
  | { readonly kind: "checking" }
  | { readonly kind: "open" }
  | { readonly kind: "not-open"; readonly message: string }
  | { readonly kind: "done"; readonly result: Result }
  | { readonly kind: "upkeep"; readonly upkeep: Upkeep };
