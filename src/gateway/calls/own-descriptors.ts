import { create, type DescFile, type Registry } from "@bufbuild/protobuf";
import { FileDescriptorProtoSchema } from "@bufbuild/protobuf/wkt";
import { createRequire } from "node:module";

/** What has a file: a service, or a type of a registry. */
interface Described {
  readonly file: DescFile;
  toString(): string;
}

/**
 * Refuses descriptors that another copy of protobuf-es has made.
 *
 * Copies of two versions do not understand each other's descriptors, and do not say so: JSON would have a number where
 * the name of an enum value belongs.
 *
 * @throws Error that names the first one, and says how to have one copy
 */
export function requireOwnDescriptors(services: readonly Described[], registry: Registry | undefined): void {
  for (const described of [...services, ...(registry ?? [])]) {
    if (isOwn(described.file)) continue;
    throw new Error(
      `${String(described)} was described by another copy of @bufbuild/protobuf than the gateway's: run ` +
        "`npm ls @bufbuild/protobuf`, and have every package use the same version",
    );
  }
}

// A message with explicit presence has a prototype that its copy of protobuf-es makes once for its type.
function isOwn({ proto }: DescFile): boolean {
  const prototype: unknown = Object.getPrototypeOf(proto);
  return prototype === ownPrototype || prototype === prototypeInCommonJs();
}

const ownPrototype: unknown = Object.getPrototypeOf(create(FileDescriptorProtoSchema));

// A program in CommonJS loads the same package in its other form, which is the same version.
function prototypeInCommonJs(): unknown {
  const require = createRequire(import.meta.url);
  const protobuf: typeof import("@bufbuild/protobuf") = require("@bufbuild/protobuf");
  const wellKnown: typeof import("@bufbuild/protobuf/wkt") = require("@bufbuild/protobuf/wkt");
  return Object.getPrototypeOf(protobuf.create(wellKnown.FileDescriptorProtoSchema));
}
