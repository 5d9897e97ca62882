import type { DescMethod } from "@bufbuild/protobuf";
import type { Protocol, ProtocolParts } from "./protocol.ts";

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
