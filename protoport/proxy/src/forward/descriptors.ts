import {
  type DescribedServices,
  InvalidDescriptorSetError,
  readDescriptorSetInTurns,
  type VisibilityOptions,
} from "@protoport/gateway/descriptors";
import { messageOf, withCode } from "@protoport/gateway/errors";

/** A descriptor source that may change. */
export interface DescriptorSource {
  /**
   * Returns a binary google.protobuf.FileDescriptorSet with all files that its files import. `read` is called at the
   * start and for each reload. Errors are reported unchanged. A read that takes 30 s fails, and its signal aborts. A
   * service whose types are missing is not proxied.
   */
  read(signal: AbortSignal): Promise<Uint8Array>;
  /** Returns the services that the last read could not describe, by full name, each with the reason. */
  omitted?(): ReadonlyMap<string, string>;
  /** Calls `changed` when the descriptors may have changed. Returns a function that stops watching. */
  watch?(changed: () => void): () => void;
}

/** An upstream's services, and all types in its descriptors. */
export interface ServiceDescriptors extends Pick<
  DescribedServices,
  "services" | "types" | "restricted" | "hiddenNumbers" | "hiddenRpcs" | "labels"
> {
  /** The services that are not proxied because the descriptors lack a type, by full name, each with the reason. */
  readonly omitted: ReadonlyMap<string, string>;
}

/** An upstream's descriptors, from which the routes are compiled. */
export interface UpstreamDescriptors extends ServiceDescriptors {
  /** Whether the upstream has never been reached, so that its services and routes are unknown. */
  readonly isUnknown: boolean;
}

/**
 * Reads a binary google.protobuf.FileDescriptorSet in several event loop turns, so that calls are served in between.
 *
 * @param isProxied - returns whether a service is proxied, by its full name
 * @param unread - the services that the last read omitted, by full name, each with the reason
 * @returns a promise that rejects with an Error if the set is invalid or contains no service to proxy
 */
export async function readDescriptors(
  bytes: Uint8Array,
  isProxied: (name: string) => boolean,
  visibility: VisibilityOptions | undefined,
  unread: ReadonlyMap<string, string>,
): Promise<ServiceDescriptors> {
  const { services, omitted, ...described } = await describeUpstreamSet(bytes, visibility);
  const proxied = services.filter(({ typeName }) => isProxied(typeName));
  const unproxied = [...omitted].filter(([name]) => isProxied(name));
  const reasons = new Map([...unread, ...unproxied.map(([name, reason]) => [name, `${name}: ${reason}`] as const)]);
  if (proxied.length === 0) {
    const all = [...reasons.values(), ...services.map(({ typeName }) => `${typeName} is not selected`)];
    throw descriptorError(["they have no service to proxy", ...all.slice(0, 3)].join("; "));
  }
  // The last read may be newer than the set, and omit its services, or services that are not proxied.
  for (const { typeName } of proxied) reasons.delete(typeName);
  return { ...described, services: proxied, omitted: new Map([...reasons].filter(([name]) => isProxied(name))) };
}

async function describeUpstreamSet(
  bytes: Uint8Array,
  visibility: VisibilityOptions | undefined,
): Promise<DescribedServices> {
  try {
    return await readDescriptorSetInTurns(bytes, visibility);
  } catch (error) {
    if (error instanceof InvalidDescriptorSetError)
      throw descriptorError("they are not a binary google.protobuf.FileDescriptorSet");
    throw descriptorError(`they are not a valid definition: ${messageOf(error)}`);
  }
}

function descriptorError(text: string): Error {
  return withCode(new Error(`cannot use the descriptors: ${text}`), "ERR_DESCRIPTORS");
}
