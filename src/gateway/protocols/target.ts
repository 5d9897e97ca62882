import type { Exchange } from "../carriers/index.ts";
import type { Procedure } from "./procedure.ts";
import type { CallTarget, Protocol, StreamWire, UnaryWire } from "./protocol.ts";

/** Creates the target of the calls of an RPC at its path, which they share. */
export function createRpcTarget(
  protocol: Protocol,
  procedure: Procedure,
  open: (exchange: Exchange) => UnaryWire & StreamWire,
): CallTarget {
  const common = { protocol, pathTemplate: undefined, open };
  if (procedure.kind === "unary") return { kind: "unary", procedure, ...common };
  return { kind: "stream", procedure, ...common };
}
