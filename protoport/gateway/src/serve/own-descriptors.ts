import { create, type DescFile, type Registry } from "@bufbuild/protobuf";
import { FileDescriptorProtoSchema } from "@bufbuild/protobuf/wkt";
import { withCode } from "../http/index.ts";

/** A service, or a type in a registry. */
interface Descriptor {
  readonly file: DescFile;
  toString(): string;
}

/**
 * Rejects descriptors that were created by another copy of protobuf-es.
 *
 * Copies with different versions misread each other's descriptors without an error. For example, JSON would contain a
 * number instead of an enum value's name.
 *
 * @param commonJsPrototype - returns the prototype of descriptors from the same copy in CommonJS, or is `undefined` on
 * platforms without CommonJS
 * @throws Error that names the first descriptor from another copy, and explains how to install a single copy
 */
export function requireOwnDescriptors(
  services: readonly Descriptor[],
  registry: Registry | undefined,
  commonJsPrototype: (() => unknown) | undefined,
): void {
  for (const descriptor of [...services, ...(registry ?? [])]) {
    if (isFromThisCopy(descriptor.file, commonJsPrototype)) continue;
    const problem =
      `${String(descriptor)} was created by a different copy of @bufbuild/protobuf than the gateway uses; run ` +
      '"npm ls @bufbuild/protobuf", and make every package use the same version';
    throw withCode(new Error(problem), "ERR_DESCRIPTORS");
  }
}

// In each copy of protobuf-es, all messages of a type with explicit presence share one prototype.
function isFromThisCopy({ proto }: DescFile, commonJsPrototype: (() => unknown) | undefined): boolean {
  const prototype: unknown = Object.getPrototypeOf(proto);
  return ownPrototypes.has(prototype) || prototype === commonJsPrototype?.();
}

const ownPrototypes: ReadonlySet<unknown> = new Set([
  Object.getPrototypeOf(create(FileDescriptorProtoSchema)),
  // The file descriptor.proto describes itself.
  Object.getPrototypeOf(FileDescriptorProtoSchema.file.proto),
]);
