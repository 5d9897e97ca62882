import {
  createFileRegistry,
  createRegistry,
  type DescEnum,
  type DescFile,
  type DescMessage,
  type DescService,
  type Registry,
} from "@bufbuild/protobuf";
import { nestedTypes } from "@bufbuild/protobuf/reflect";
import type { FileDescriptorProto } from "@bufbuild/protobuf/wkt";
import { messageOf, runInTurns, runSteps, toShortLine } from "../../http/index.ts";
import { completeFiles, copyWith } from "./complete-files.ts";
import { hideRestricted, type VisibilityOptions, type VisibleFiles } from "./hide-restricted.ts";
import { neededFiles, referredTypes } from "./needed-files.ts";
import { parseFiles } from "./parse-files.ts";
import { distinctFiles, validateFiles } from "./validate-files.ts";

/** A descriptor set's types, and the services that can be served. */
export interface DescribedServices {
  readonly services: readonly DescService[];
  readonly types: Registry;
  /** The reason for each service that is omitted because a type is missing, by the service's full name. */
  readonly omitted: ReadonlyMap<string, string>;
  /** The missing imported files that may declare the missing types. */
  readonly missingFiles: ReadonlySet<string>;
  /** The full names of messages that `google.api.visibility` rules hide, and of types with hidden fields or values. */
  readonly restricted: ReadonlySet<string>;
  /** The numbers that only hidden enum values have, as `package.Enum=2`. */
  readonly hiddenNumbers?: ReadonlySet<string>;
  /** The full names of services and RPCs that `google.api.visibility` rules hide. */
  readonly hiddenRpcs: ReadonlySet<string>;
  /** All labels in visibility rules. Empty without {@link VisibilityOptions}. */
  readonly labels: ReadonlySet<string>;
}

/** Thrown for bytes that are not a FileDescriptorSet. */
export class InvalidDescriptorSetError extends Error {}

/**
 * Reads a binary google.protobuf.FileDescriptorSet with files in any order. Missing files from google/protobuf and
 * google/api are added. If another file or type is missing, only the services that need it are omitted. An invalid file
 * is omitted if no service needs the file.
 *
 * @throws InvalidDescriptorSetError if the bytes are not a FileDescriptorSet, or Error for an invalid definition
 */
export function readDescriptorSet(bytes: Uint8Array, visibility?: VisibilityOptions): DescribedServices {
  return runSteps(readInSteps(bytes, visibility));
}

/** Like {@link readDescriptorSet}, but does not block the event loop (see {@link runInTurns}). */
export function readDescriptorSetInTurns(
  bytes: Uint8Array,
  visibility?: VisibilityOptions,
): Promise<DescribedServices> {
  return runInTurns(readInSteps(bytes, visibility));
}

/**
 * Reads a set as {@link readDescriptorSet} does. Yields the number of bytes that each step has parsed, or 0 for a step
 * with other work.
 */
export function* readInSteps(bytes: Uint8Array, visibility?: VisibilityOptions): Generator<number, DescribedServices> {
  const files = distinctFiles(yield* parse(bytes));
  const needed = yield* neededFiles(files);
  const valid = yield* validateFiles(files, needed);
  const { visible, ...visibilities } =
    visibility === undefined ? allVisible(valid) : yield* hideRestricted(valid, visibility);
  const { set, omitted, missingFiles } = yield* completeFiles(visible);
  const neededNames = new Set([...needed].map(({ name }) => name));
  const types = yield* linkFiles(set.file, (name) => neededNames.has(name));
  const services = [...types]
    .filter((type) => type.kind === "service")
    .filter(({ typeName }) => !omitted.has(typeName));
  return { services, types, omitted, missingFiles, ...visibilities };
}

function allVisible(visible: readonly FileDescriptorProto[]): VisibleFiles {
  return { visible, restricted: new Set(), hiddenNumbers: new Set(), hiddenRpcs: new Set(), labels: new Set() };
}

function* parse(bytes: Uint8Array): Generator<number, readonly FileDescriptorProto[]> {
  try {
    return yield* parseFiles(bytes);
  } catch (error) {
    // Older protobuf-es releases have no depth limit and overflow the stack instead.
    const isTooDeep = /recursion depth|call stack/.test(messageOf(error));
    if (!isTooDeep) throw new InvalidDescriptorSetError(messageOf(error), { cause: error });
    throw new Error("messages must not be nested more than 100 levels deep in a descriptor set", { cause: error });
  }
}

/**
 * Creates a registry from complete files, each after its imports. Unlike `createFileRegistry`, yields after each file.
 * Invalid files that are not needed are omitted.
 *
 * @throws Error with protobuf-es' message if a needed file is invalid
 */
export function* linkFiles(
  protos: readonly FileDescriptorProto[],
  isNeeded: (name: string) => boolean,
): Generator<number, Registry> {
  const files = new Map<string, DescFile>();
  const types = new Map<string, DescMessage | DescEnum>();
  for (const proto of protos) {
    yield 0;
    let file: DescFile;
    try {
      file = linkFile(proto, files, types);
    } catch (error) {
      if (isNeeded(proto.name)) throw error;
      continue;
    }
    files.set(proto.name, file);
    for (const type of nestedTypes(file)) {
      if (type.kind === "message" || type.kind === "enum") types.set(type.typeName, type);
    }
  }
  return createRegistry(...files.values());
}

function linkFile(
  complete: FileDescriptorProto,
  files: ReadonlyMap<string, DescFile>,
  types: ReadonlyMap<string, DescMessage | DescEnum>,
): DescFile {
  // Imports of omitted files are removed.
  const proto = copyWith(complete, { dependency: complete.dependency.filter((name) => files.has(name)) });
  const needed = [...referredTypes(proto)].flatMap((name) => types.get(name) ?? []);
  const byFile = Map.groupBy(needed, ({ file }) => file);
  // Returns an import with only the types that the file uses, because `createFileRegistry` adds all types in an import.
  const resolve = (name: string): DescFile | undefined => {
    const imported = files.get(name);
    if (imported === undefined) return undefined;
    const used = byFile.get(imported) ?? [];
    return {
      ...imported,
      dependencies: [],
      messages: used.filter((type) => type.kind === "message"),
      enums: used.filter((type) => type.kind === "enum"),
      extensions: [],
      services: [],
    };
  };
  let file: DescFile | undefined;
  try {
    file = createFileRegistry(proto, resolve).getFile(proto.name);
  } catch (error) {
    throw new Error(toShortLine(messageOf(error)), { cause: error });
  }
  if (file === undefined) throw new TypeError(`the registry has no file ${toShortLine(proto.name)}`);
  return Object.assign(file, { dependencies: proto.dependency.flatMap((name) => files.get(name) ?? []) });
}
