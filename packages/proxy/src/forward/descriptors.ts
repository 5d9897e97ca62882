import { type DescribedServices, NotADescriptorSet, readDescriptorSet } from "@plantstore/gateway/internal/descriptors";
import { messageOf, withCode } from "@plantstore/gateway/internal/errors";

/** Where descriptors come from that may change. */
export interface DescriptorSource {
  /**
   * Returns a binary google.protobuf.FileDescriptorSet with all that its files import. Called at the start and for each
   * reload. What it rejects with is told as it is. Services that need a type which is not there are not passed on.
   */
  read(signal: AbortSignal): Promise<Uint8Array>;
  /** Returns the services that the last reading could not describe, by their full names, each with the reason. */
  omitted?(): ReadonlyMap<string, string>;
  /** Calls `changed` when there may be others to read. Returns a function that stops it. */
  watch?(changed: () => void): () => void;
}

/** The services of an upstream, and all types that were described with them. */
export interface Described extends Pick<DescribedServices, "services" | "types"> {
  /** Why services are not passed on whose descriptors have a hole, by their full names. */
  readonly omitted: ReadonlyMap<string, string>;
}

/**
 * Reads a binary google.protobuf.FileDescriptorSet.
 *
 * @param isProxied - whether a service is passed on, by its full name
 * @throws Error that says what is wrong with it, also that there is no such service
 */
export function readDescriptors(bytes: Uint8Array, isProxied: (name: string) => boolean): Described {
  const { services, types, omitted } = describe(bytes);
  const proxied = services.filter(({ typeName }) => isProxied(typeName));
  const left = [...omitted]
    .filter(([name]) => isProxied(name))
    .map(([name, reason]): [string, string] => [name, `${name}: ${reason}`]);
  if (proxied.length === 0) {
    const reasons = left.slice(0, 3).map(([, reason]) => reason);
    throw problem(["they have no service that is passed on", ...reasons].join("; "));
  }
  return { services: proxied, types, omitted: new Map(left) };
}

function describe(bytes: Uint8Array): DescribedServices {
  try {
    return readDescriptorSet(bytes);
  } catch (error) {
    if (error instanceof NotADescriptorSet) throw problem("they are no binary google.protobuf.FileDescriptorSet");
    throw problem(`they are no valid definition: ${messageOf(error)}`);
  }
}

function problem(text: string): Error {
  return withCode(new Error(`the descriptors cannot be used: ${text}`), "ERR_DESCRIPTORS");
}
