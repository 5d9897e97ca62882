import { createFileRegistry, type DescService, type FileRegistry, fromBinary } from "@bufbuild/protobuf";
import { type FileDescriptorSet, FileDescriptorSetSchema } from "@bufbuild/protobuf/wkt";
import { messageOf, withCode } from "../errors/index.ts";

/** Where descriptors come from that may change. */
export interface DescriptorSource {
  /**
   * Returns a binary google.protobuf.FileDescriptorSet with all that its files import. Called at the start and for each
   * reload. What it rejects with is told as it is.
   */
  read(signal: AbortSignal): Promise<Uint8Array>;
  /** Calls `changed` when there may be others to read. Returns a function that stops it. */
  watch?(changed: () => void): () => void;
}

/** The services of an upstream, and all types that were described with them. */
export interface Described {
  readonly services: readonly DescService[];
  readonly types: FileRegistry;
}

/**
 * Reads a binary google.protobuf.FileDescriptorSet.
 *
 * @param isProxied - whether a service is passed on, by its full name
 * @throws Error that says what is wrong with it, also that there is no such service
 */
export function readDescriptors(bytes: Uint8Array, isProxied: (name: string) => boolean): Described {
  const set = parseSet(bytes);
  const names = new Set(set.file.map(({ name }) => name));
  const missing = new Set(set.file.flatMap(({ dependency }) => dependency.filter((name) => !names.has(name))));
  if (missing.size > 0) throw problem(`they lack files that others import: ${[...missing].slice(0, 3).join(", ")}`);
  let types: FileRegistry;
  try {
    types = createFileRegistry(set);
  } catch (error) {
    throw problem(`they are no valid definition: ${messageOf(error)}`);
  }
  const services = [...types].filter((type) => type.kind === "service").filter(({ typeName }) => isProxied(typeName));
  if (services.length === 0) throw problem("they have no service that is passed on");
  return { services, types };
}

function parseSet(bytes: Uint8Array): FileDescriptorSet {
  try {
    return fromBinary(FileDescriptorSetSchema, bytes);
  } catch {
    throw problem("they are no binary google.protobuf.FileDescriptorSet");
  }
}

function problem(text: string): Error {
  return withCode(new Error(`the descriptors cannot be used: ${text}`), "ERR_DESCRIPTORS");
}
