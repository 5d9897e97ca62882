import type { BodyPlan } from "../../http/index.ts";
import type { ErrorRecordWriter, RestBinding } from "./rules/index.ts";
import type { Rpc } from "../rpc.ts";
import type { Representations } from "./representation.ts";

/** An RPC's rule, prepared before the first call. */
export interface RestRule {
  readonly rpc: Rpc;
  readonly binding: RestBinding;
  /** The plan for reading a body with one message, or `undefined` if the rule ignores the body. */
  readonly body: BodyPlan | undefined;
  readonly writeErrorRecord: ErrorRecordWriter;
  /** The message representations other than JSON in one line, or `undefined` if there are none. */
  readonly representations: Representations | undefined;
}

/** The rule that a request matches, with the path variables and the query. */
export interface MatchedRule {
  readonly rule: RestRule;
  /** The variable values in the path template. */
  readonly captures: readonly string[];
  /** The query as sent, without the question mark. */
  readonly query: string;
}
