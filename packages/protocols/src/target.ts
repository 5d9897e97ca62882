import type { Exchange } from "@plantstore/http";
import type { Rpc } from "./rpc.ts";
import type { CallTarget, Protocol, StreamWire, UnaryWire } from "./protocol.ts";

/** Creates a target for an RPC. All calls to an RPC's path share one target. */
export function createTarget(
  protocol: Protocol,
  rpc: Rpc,
  open: (exchange: Exchange) => UnaryWire & StreamWire,
  pathTemplate?: string,
): CallTarget {
  const common = { protocol, pathTemplate, open };
  if (rpc.kind === "unary") return { kind: "unary", rpc, ...common };
  return { kind: "stream", rpc, ...common };
}
