import { create, type DescFile, type Registry } from "@bufbuild/protobuf";
import { FileDescriptorProtoSchema } from "@bufbuild/protobuf/wkt";

/** What has a file: a service, or a type of a registry. */
interface Described {
  readonly file: DescFile;
  toString(): string;
}

/**
 * Refuses descriptors that another copy of protobuf-es has made.
 *
 * Copies of different versions misread each other's descriptors without an error: JSON would have a number where the
 * name of an enum value belongs.
 *
 * @param commonJsPrototype - returns the prototype of descriptors of the same copy in CommonJS, where there can be any
 * @throws Error that names the first one, and says how to have one copy
 */
export function requireOwnDescriptors(
  services: readonly Described[],
  registry: Registry | undefined,
  commonJsPrototype: (() => unknown) | undefined,
): void {
  for (const described of [...services, ...(registry ?? [])]) {
    if (isOwn(described.file, commonJsPrototype)) continue;
    throw new Error(
      `${String(described)} was described by another copy of @bufbuild/protobuf than the gateway's: run ` +
        "`npm ls @bufbuild/protobuf`, and have every package use the same version",
    );
  }
}

// A message with explicit presence has a prototype that its copy of protobuf-es makes once for its type.
function isOwn({ proto }: DescFile, commonJsPrototype: (() => unknown) | undefined): boolean {
  const prototype: unknown = Object.getPrototypeOf(proto);
  return prototype === ownPrototype || prototype === commonJsPrototype?.();
}

const ownPrototype: unknown = Object.getPrototypeOf(create(FileDescriptorProtoSchema));
