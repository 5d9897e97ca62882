import type { Exchange } from "../exchange/index.ts";
import type { Rpc } from "./rpc.ts";
import type { CallTarget, Protocol, StreamWire, UnaryWire } from "./protocol.ts";

/** Creates the target that is shared by all calls to the path of an RPC. */
export function createTarget(
  protocol: Protocol,
  rpc: Rpc,
  open: (exchange: Exchange) => UnaryWire & StreamWire,
): CallTarget {
  const common = { protocol, pathTemplate: undefined, open };
  if (rpc.kind === "unary") return { kind: "unary", rpc, ...common };
  return { kind: "stream", rpc, ...common };
}
