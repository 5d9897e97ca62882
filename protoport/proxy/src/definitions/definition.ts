import { createReadStream } from "node:fs";
import type { DescService } from "@bufbuild/protobuf";
import {
  declaredNames,
  type DescribedServices,
  describeUnusedLabels,
  InvalidDescriptorSetError,
  readDescriptorSet,
  type VisibilityOptions,
} from "@protoport/gateway/descriptors";
import { messageOf } from "@protoport/gateway/errors";
import { createNameFilter } from "@protoport/gateway/rest";
import { InputError } from "./read-input.ts";

/** Maximum definition size in bytes. The descriptors for all Google APIs together take 30 MB. */
export const maxDefinitionBytes: number = 200 * 1024 * 1024;

/** The services of a definition, which is a binary google.protobuf.FileDescriptorSet. Buf images have the same format. */
export interface Definition {
  /** The name in messages, such as the path of the file. */
  readonly name: string;
  /** The services that are complete and visible. */
  readonly services: readonly DescService[];
  /** All RPCs in the file, including omitted and hidden RPCs, as `package.Service.Method`. */
  readonly declaredRpcs: readonly string[];
  /** The services and RPCs that `visibility` hides, by full name. */
  readonly hiddenRpcs: ReadonlySet<string>;
  /** Whether `visibility` was given, so that hidden elements are missing. */
  readonly isRestricted: boolean;
  /** One message for each service that lacks a type, and for each visibility label that is not used. */
  readonly warnings: readonly string[];
}

/**
 * Reads a definition from a file or a pipe.
 *
 * @param visibility - selects the visible elements. Without it, all elements are visible
 * @throws InputError for any other file, for a file above {@link maxDefinitionBytes} bytes, or if every service lacks a
 * type
 */
export async function readDefinition(path: string, visibility?: VisibilityOptions): Promise<Definition> {
  let bytes: Uint8Array;
  try {
    // `end` is inclusive. A file that is too large is detected by reading one byte more than the limit.
    bytes = await readBytes(createReadStream(path, { end: maxDefinitionBytes }), path);
  } catch (error) {
    throw error instanceof InputError ? error : new InputError(`cannot read ${path}: ${messageOf(error)}`);
  }
  if (bytes.length === 0) throw new InputError(`${path} is empty. ${howToCreate}`);
  return parseDefinition(path, bytes, visibility);
}

/** Parses a definition. @param name - the definition's name in messages @throws as {@link readDefinition} does */
export function parseDefinition(name: string, bytes: Uint8Array, visibility?: VisibilityOptions): Definition {
  const { services, omitted, missingFiles, hiddenRpcs, labels } = describeSet(name, bytes, visibility);
  const isGoogleMissing = [...missingFiles].some((file) => file.startsWith("google/"));
  const hint = isGoogleMissing ? `${howToCreate}. ${googleApis}` : howToCreate;
  const omissions = [...omitted].map(([service, reason]) => `${service} is omitted: ${reason}. ${hint}`);
  if (services.length === 0) throw new InputError(omissions[0] ?? `${name} declares no services`);
  const warnings = [...omissions, ...describeUnusedLabels(visibility, labels)];
  const isRestricted = visibility !== undefined;
  return { name, services, declaredRpcs: declaredNames(bytes).rpcs, hiddenRpcs, isRestricted, warnings };
}

/**
 * Returns a definition with some of its services.
 *
 * @param names - full names. A name that ends in `*` is a prefix. An empty array selects all services
 * @throws InputError if no service is selected
 */
export function selectServices(definition: Definition, names: readonly string[]): Definition {
  const isSelected = createNameFilter(names) ?? (() => true);
  const services = definition.services.filter(({ typeName }) => isSelected(typeName));
  if (services.length === 0) throw new InputError(`${definition.name} has no service that matches ${names.join(", ")}`);
  return { ...definition, services };
}

/** Reads a stream. @param name - for messages @throws InputError above {@link maxDefinitionBytes} bytes */
export async function readBytes(input: AsyncIterable<Uint8Array>, name: string): Promise<Buffer> {
  const pieces: Uint8Array[] = [];
  let length = 0;
  for await (const piece of input) {
    pieces.push(piece);
    length += piece.length;
    if (length > maxDefinitionBytes) throw new InputError(`${name} is larger than ${maxDefinitionBytes} bytes`);
  }
  return Buffer.concat(pieces, length);
}

const howToCreate =
  'Create it with "buf build -o set.binpb" or "protoc --include_imports --descriptor_set_out=set.binpb"';

const googleApis =
  'Files in google/ are in the package google-proto-files: run "npm install --save-dev google-proto-files"';

function describeSet(path: string, bytes: Uint8Array, visibility: VisibilityOptions | undefined): DescribedServices {
  const notADescriptorSet = (reason: string): InputError =>
    new InputError(`${path} is not a binary descriptor set: it ${reason}. ${howToCreate}`);
  if (bytes[0] === 0x1f && bytes[1] === 0x8b) throw notADescriptorSet("is compressed with gzip");
  // 0x0a is the tag of `file`, the only field in a FileDescriptorSet.
  if (bytes[0] !== 0x0a)
    throw notADescriptorSet(isText(bytes) ? "is text" : "does not start with a FileDescriptorProto");
  try {
    return readDescriptorSet(bytes, visibility);
  } catch (error) {
    if (!(error instanceof InvalidDescriptorSetError))
      throw new InputError(`${path} is not a valid definition: ${messageOf(error)}`);
    throw notADescriptorSet(isText(bytes) ? "is text" : `is truncated or not protobuf (${messageOf(error)})`);
  }
}

/** Returns whether a file starts with text, as .proto files and descriptor sets in JSON do. */
function isText(bytes: Uint8Array): boolean {
  // eslint-disable-next-line no-control-regex
  return !/[\x00-\x08\x0e-\x1f\x7f-\xff]/.test(Buffer.from(bytes.subarray(0, 1000)).toString("latin1"));
}
