import type { Exchange } from "@plantstore/http";
import type { Rpc } from "./rpc.ts";
import type { CallTarget, Protocol, StreamWire, UnaryWire } from "./protocol.ts";

/** Creates an RPC's target. The target is shared by all calls to its path, unless the path names no RPC. */
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
