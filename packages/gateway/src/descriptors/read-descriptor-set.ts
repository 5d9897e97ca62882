import { createFileRegistry, type DescService, type FileRegistry, fromBinary } from "@bufbuild/protobuf";
import { type FileDescriptorSet, FileDescriptorSetSchema } from "@bufbuild/protobuf/wkt";
import { messageOf, toShortLine } from "../errors/index.ts";
import { completeFiles } from "./complete-files.ts";
import { distinctFiles, validateFiles } from "./validate-files.ts";

/** The services of a set that can be served, and all types of the set. */
export interface DescribedServices {
  readonly services: readonly DescService[];
  readonly types: FileRegistry;
  /** The omitted services by their full names, each with the reason: a type that it needs is missing. */
  readonly omitted: ReadonlyMap<string, string>;
  /** The imported files that are missing and may declare those types. */
  readonly missingFiles: ReadonlySet<string>;
}

/** Thrown for bytes that are not a FileDescriptorSet. */
export class NotADescriptorSet extends Error {}

/**
 * The deepest nesting of messages in a set, including three levels of the set itself. 100, as in protobuf's readers.
 */
const recursionLimit = 100;

/**
 * Reads a binary google.protobuf.FileDescriptorSet with files in any order. Missing files of google/protobuf and
 * google/api are added; if other files or types are missing, only the services that need them are omitted.
 *
 * @throws NotADescriptorSet if the bytes are not a FileDescriptorSet; Error that states what is wrong with the
 * definition
 */
export function readDescriptorSet(bytes: Uint8Array): DescribedServices {
  const files = distinctFiles(parseSet(bytes).file);
  validateFiles(files);
  const { set, omitted, missingFiles } = completeFiles(files);
  const types = toRegistry(set);
  const services = [...types]
    .filter((type) => type.kind === "service")
    .filter(({ typeName }) => !omitted.has(typeName));
  return { services, types, omitted, missingFiles };
}

/** @throws Error with the message of protobuf-es, which quotes strings of the set */
function toRegistry(set: FileDescriptorSet): FileRegistry {
  try {
    return createFileRegistry(set);
  } catch (error) {
    throw new Error(toShortLine(messageOf(error)), { cause: error });
  }
}

function parseSet(bytes: Uint8Array): FileDescriptorSet {
  try {
    return fromBinary(FileDescriptorSetSchema, bytes, { recursionLimit });
  } catch (error) {
    // Older releases of protobuf-es have no depth limit and overflow the stack instead.
    const isTooDeep = /recursion depth|call stack/.test(messageOf(error));
    if (!isTooDeep) throw new NotADescriptorSet(messageOf(error), { cause: error });
    throw new Error(`messages must not be nested more than ${recursionLimit} levels deep in a descriptor set`, {
      cause: error,
    });
  }
}
