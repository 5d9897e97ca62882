import type { RestBinding } from "../../rest/index.ts";
import type { Procedure, StreamProcedure, UnaryProcedure } from "../procedure.ts";

/** The RPC that a REST request asks for, with the rule that matched and what the path captured. */
export interface RestSelection {
  readonly procedure: Procedure;
  readonly binding: RestBinding;
  readonly captures: readonly string[];
  /** The query as sent, without its question mark. */
  readonly query: string;
}

/** A unary RPC that a REST request asks for. */
export interface RestTarget extends RestSelection {
  readonly kind: "rest";
  readonly protocol: "rest";
  readonly procedure: UnaryProcedure;
}

/** A streaming RPC that a REST request asks for. */
export interface RestStreamTarget extends RestSelection {
  readonly kind: "rest-stream";
  readonly protocol: "rest";
  readonly procedure: StreamProcedure;
}
