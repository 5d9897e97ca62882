import type { Protocol, ProtocolParts } from "./protocol.ts";

/** A protocol that is not part of every gateway. Its code is loaded only by the programs that create it. */
export interface ProtocolExtension {
  /** The path of all its requests, without the gateway's prefix. */
  readonly path: string;
}

/** Creates a protocol when routes are compiled; for a proxy, each time descriptors are read. */
type CreateProtocol = (parts: ProtocolParts) => Protocol;

// Not members of the extensions, because the parts of a protocol are not public.
const creators = new WeakMap<ProtocolExtension, CreateProtocol>();

/** Returns an extension for the options of a gateway. */
export function createExtension(path: string, create: CreateProtocol): ProtocolExtension {
  const extension: ProtocolExtension = { path };
  creators.set(extension, create);
  return extension;
}

/** Returns the function that creates the protocol of an extension; `undefined` for any other value. */
export function creatorOf(extension: ProtocolExtension): CreateProtocol | undefined {
  return creators.get(extension);
}
