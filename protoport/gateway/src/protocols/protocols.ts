import type { DescMethod } from "@bufbuild/protobuf";
import { connect } from "./connect/protocol.ts";
import { grpcWeb } from "./grpc-web/protocol.ts";
import { grpc } from "./grpc/protocol.ts";
import type { ProtocolName } from "./hooks.ts";
import type { Protocol, ProtocolParts, RequestHead } from "./protocol.ts";
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

/** An optional protocol, such as MCP. Only programs that create the protocol load its code. */
export interface ProtocolExtension {
  /** The path of all requests in this protocol, without the gateway's prefix. */
  readonly path: string;
  /** Returns the tool name of each RPC that is a tool. */
  toolNamesOf(methods: readonly DescMethod[]): ReadonlyMap<DescMethod, string>;
}

/** Called each time routes are compiled. A proxy compiles routes each time it reads descriptors. */
type CreateProtocol = (parts: ProtocolParts) => Protocol;

// The creators are not members of `ProtocolExtension`, because the type `Protocol` is not public.
const creators = new WeakMap<ProtocolExtension, CreateProtocol>();

/** Returns an extension for a gateway's options. */
export function createExtension(
  path: string,
  toolNamesOf: ProtocolExtension["toolNamesOf"],
  create: CreateProtocol,
): ProtocolExtension {
  const extension: ProtocolExtension = { path, toolNamesOf };
  creators.set(extension, create);
  return extension;
}

/** Returns the function that creates an extension's protocol, or `undefined` if the value is not an extension. */
export function creatorOf(extension: ProtocolExtension): CreateProtocol | undefined {
  return creators.get(extension);
}

/** Returns an extension without the tools of some RPCs. */
export function withoutTools(extension: ProtocolExtension, held: ReadonlySet<DescMethod>): ProtocolExtension {
  const create = creatorOf(extension);
  if (create === undefined || held.size === 0) return extension;
  return createExtension(
    extension.path,
    (methods) => extension.toolNamesOf(methods),
    (parts) => create({ ...parts, rpcs: parts.rpcs.filter(({ method }) => !held.has(method)) }),
  );
}
