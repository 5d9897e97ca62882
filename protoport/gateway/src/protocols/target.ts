import type { Exchange } from "../http/index.ts";
import type { Rpc } from "./rpc.ts";
import type { CallTarget, Protocol, StreamWire } from "./protocol.ts";

/** Creates a target for an RPC. All calls to an RPC's path share one target. */
export function createTarget(
  protocol: Protocol,
  rpc: Rpc,
  open: (exchange: Exchange) => StreamWire,
  pathTemplate?: string,
): CallTarget {
  return { kind: rpc.kind, protocol, rpc, pathTemplate, open };
}
