import { createFileRegistry, type DescService, type FileRegistry, fromBinary } from "@bufbuild/protobuf";
import { type FileDescriptorSet, FileDescriptorSetSchema } from "@bufbuild/protobuf/wkt";
import { messageOf } from "../errors/index.ts";
import { fillHoles } from "./fill-holes.ts";
import { distinctFiles, validateFiles } from "./validate-files.ts";

/** The services of a set that can be served, and all types that were described with them. */
export interface DescribedServices {
  readonly services: readonly DescService[];
  readonly types: FileRegistry;
  /** Why services are not among them, by their full names: a type that they need is missing. */
  readonly omitted: ReadonlyMap<string, string>;
}

/** Says that bytes are no FileDescriptorSet. */
export class NotADescriptorSet extends Error {}

/** Levels of messages inside messages in a set: those of a definition, and three of its own. 100, as protobuf's readers have. */
const recursionLimit = 100;

/**
 * Reads a binary google.protobuf.FileDescriptorSet, whatever the order of its files. Files of google/protobuf and
 * google/api that it lacks are known here; other files and types that it lacks cost only the services that need them.
 *
 * @throws NotADescriptorSet for bytes that are none; Error that says what is wrong with the definition
 */
export function readDescriptorSet(bytes: Uint8Array): DescribedServices {
  const files = distinctFiles(parseSet(bytes).file);
  validateFiles(files);
  const { set, omitted } = fillHoles(files);
  const types = createFileRegistry(set);
  const services = [...types]
    .filter((type) => type.kind === "service")
    .filter(({ typeName }) => !omitted.has(typeName));
  return { services, types, omitted };
}

function parseSet(bytes: Uint8Array): FileDescriptorSet {
  try {
    return fromBinary(FileDescriptorSetSchema, bytes, { recursionLimit });
  } catch (error) {
    // Older releases of protobuf-es have no limit but the stack.
    const isTooDeep = /recursion depth|call stack/.test(messageOf(error));
    if (!isTooDeep) throw new NotADescriptorSet(messageOf(error), { cause: error });
    throw new Error(`messages must not be nested more than ${recursionLimit} levels deep in a descriptor set`, {
      cause: error,
    });
  }
}
