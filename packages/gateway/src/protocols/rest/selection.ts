import type { BodyPlan } from "../../exchange/index.ts";
import type { ErrorRecordWriter, RestBinding } from "./rules/index.ts";
import type { Rpc } from "../rpc.ts";

/** What a REST request asks for: the RPC, the rule that matched, and what is in the URL. */
export interface RestSelection {
  readonly rpc: Rpc;
  readonly binding: RestBinding;
  /** How the body is read when the client sends one message; `undefined` if the rule gives it no meaning. */
  readonly body: BodyPlan | undefined;
  readonly writeErrorRecord: ErrorRecordWriter;
  /** What the path captured, for each variable of the rule. */
  readonly captures: readonly string[];
  /** The query as sent, without its question mark. */
  readonly query: string;
}
