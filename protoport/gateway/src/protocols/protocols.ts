import { connect } from "./connect/protocol.ts";
import { grpc } from "./grpc/protocol.ts";
import { grpcWeb } from "./grpc-web/protocol.ts";
import { creatorOf, type ProtocolExtension } from "./extension.ts";
import type { Protocol, ProtocolParts, RequestHead } from "./protocol.ts";
import type { ProtocolName } from "./protocol-name.ts";
import { createRest } from "./rest/protocol.ts";

/** Creates a gateway's protocols. @param mcp - `undefined` if MCP is off */
export function createProtocols(parts: ProtocolParts, mcp?: ProtocolExtension): Protocols {
  const rest = createRest(parts);
  // The first protocol that claims a request responds to the request. REST is last because REST claims every request.
  const byName: Readonly<Record<ProtocolName, Protocol | undefined>> = {
    "grpc-web": grpcWeb,
    grpc,
    connect,
    mcp: mcp && creatorOf(mcp)?.(parts),
    rest,
  };
  const all = Object.values(byName).filter((protocol) => protocol !== undefined);
  return { all, rest, ofGet: all.find(hasTargetsOfGet), withPaths: all.filter(hasPaths) };
}

/** A gateway's protocols. */
export interface Protocols {
  readonly all: readonly Protocol[];
  /** The REST protocol, which also responds to requests that are not calls. */
  readonly rest: Protocol;
  /** The protocol that accepts GET at an RPC's path. */
  readonly ofGet: WithGet | undefined;
  /** The protocols with paths other than RPC paths. */
  readonly withPaths: readonly WithPaths[];
}

type WithGet = Protocol & Required<Pick<Protocol, "targetOfGet">>;
type WithPaths = Protocol & Required<Pick<Protocol, "find">>;

function hasTargetsOfGet(protocol: Protocol): protocol is WithGet {
  return protocol.targetOfGet !== undefined;
}

function hasPaths(protocol: Protocol): protocol is WithPaths {
  return protocol.find !== undefined;
}

/** Returns the protocol that writes the response to a request that matches no target. */
export function protocolForUnmatched({ all, rest }: Protocols, head: RequestHead): Protocol {
  return all.find((protocol) => protocol.handlesUnmatched(head)) ?? rest;
}
