import type { RestBinding } from "../../rest/index.ts";
import type { Rpc } from "../rpc.ts";

/** The RPC that a REST request asks for, with the rule that matched and what the path captured. */
export interface RestSelection {
  readonly rpc: Rpc;
  readonly binding: RestBinding;
  readonly captures: readonly string[];
  /** The query as sent, without its question mark. */
  readonly query: string;
}
