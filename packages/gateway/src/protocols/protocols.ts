import { connect } from "./connect/protocol.ts";
import { grpc } from "./grpc/protocol.ts";
import { grpcWeb } from "./grpc-web/protocol.ts";
import type { Protocol, ProtocolName, ProtocolParts, RequestHead } from "./protocol.ts";
import { createRest } from "./rest/protocol.ts";

/** Creates the protocols of a gateway. */
export function createProtocols(parts: ProtocolParts): Protocols {
  const rest = createRest(parts);
  // In the order in which they are asked whether they claim a request: REST claims all that no other does.
  const byName: Readonly<Record<ProtocolName, Protocol>> = { "grpc-web": grpcWeb, grpc, connect, rest };
  const all = Object.values(byName);
  return {
    all,
    rest,
    ofGet: all.find(hasTargetsOfGet),
    withPaths: all.filter(hasPaths),
    hasDefaultErrors: parts.writeErrorRecord.isDefault,
  };
}

/** The protocols of a gateway. */
export interface Protocols {
  readonly all: readonly Protocol[];
  /** The protocol of everything that is not a call. */
  readonly rest: Protocol;
  /** The protocol of calls by GET at the path of an RPC. */
  readonly ofGet: WithGet | undefined;
  /** Those that have paths of their own. */
  readonly withPaths: readonly WithPaths[];
  /** Whether errors of REST have their default form. */
  readonly hasDefaultErrors: boolean;
}

type WithGet = Protocol & Required<Pick<Protocol, "targetOfGet">>;
type WithPaths = Protocol & Required<Pick<Protocol, "find">>;

function hasTargetsOfGet(protocol: Protocol): protocol is WithGet {
  return protocol.targetOfGet !== undefined;
}

function hasPaths(protocol: Protocol): protocol is WithPaths {
  return protocol.find !== undefined;
}

/** Returns the protocol in which to answer a request that matches nothing. */
export function claimedBy({ all, rest }: Protocols, head: RequestHead): Protocol {
  return all.find((protocol) => protocol.claims(head)) ?? rest;
}
