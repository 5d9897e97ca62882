import { createReadStream } from "node:fs";
import type { DescService } from "@bufbuild/protobuf";
import {
  declaredNames,
  type DescribedServices,
  describeUnusedLabels,
  InvalidDescriptorSetError,
  readDescriptorSet,
} from "@protoport/gateway/descriptors";
import { messageOf } from "@protoport/gateway/errors";
import { InputError } from "./input-error.ts";
import { definitionMaxBytes, readDefinition } from "./read-definition.ts";

/**
 * Reads the services in a binary google.protobuf.FileDescriptorSet from a file. Buf images have the same format.
 *
 * @param labels - the allowed visibility labels, or `undefined` if all elements are visible
 * @throws InputError for any other file, or if every service lacks a type
 */
export async function readServices(path: string, labels?: readonly string[]): Promise<ReadServices> {
  return servicesOf(path, await readBytes(path), labels);
}

/** Returns a descriptor set's services. `path` is for messages. @throws InputError as {@link readServices} does */
export function servicesOf(path: string, bytes: Uint8Array, labels?: readonly string[]): ReadServices {
  const { services, omitted, missingFiles, hiddenRpcs, labels: used } = describe(path, bytes, labels);
  const isGoogleMissing = [...missingFiles].some((name) => name.startsWith("google/"));
  const hint = isGoogleMissing ? `${howToCreate}. ${googleApis}` : howToCreate;
  const omissions = [...omitted].map(([name, reason]) => `${name} is omitted: ${reason}. ${hint}`);
  const warnings = [...omissions, ...describeUnusedLabels(labels && { allow: labels }, used)];
  if (services.length > 0) return { services, declaredRpcs: declaredNames(bytes).rpcs, hiddenRpcs, warnings };
  throw new InputError(omissions[0] ?? `${path} declares no services`);
}

/** The services in a file, and the warnings about them. */
export interface ReadServices {
  readonly services: readonly DescService[];
  /** All RPCs in the file, including omitted and hidden RPCs, as `package.Service.Method`. */
  readonly declaredRpcs: readonly string[];
  /** The services and RPCs that visibility rules hide, by full name. */
  readonly hiddenRpcs: ReadonlySet<string>;
  /** One message for each service that lacks a type, and for each label that is not used. */
  readonly warnings: readonly string[];
}

const howToCreate =
  'Create it with "buf build -o set.binpb" or "protoc --include_imports --descriptor_set_out=set.binpb"';

const googleApis =
  'Files in google/ are in the package google-proto-files: run "npm install --save-dev google-proto-files"';

/**
 * Reads a file or a pipe. Reading a pipe may never finish, but an interrupt stops `check`, which is the only caller.
 *
 * @throws InputError if the file cannot be read, is empty, or is larger than {@link definitionMaxBytes}
 */
async function readBytes(path: string): Promise<Uint8Array> {
  let bytes: Uint8Array;
  try {
    // `end` is inclusive. A file that is too large is detected by reading one byte more than the limit.
    bytes = await readDefinition(createReadStream(path, { end: definitionMaxBytes }), path);
  } catch (error) {
    throw error instanceof InputError ? error : new InputError(`cannot read ${path}: ${messageOf(error)}`);
  }
  if (bytes.length === 0) throw new InputError(`${path} is empty. ${howToCreate}`);
  return bytes;
}

function describe(path: string, bytes: Uint8Array, labels: readonly string[] | undefined): DescribedServices {
  const notADescriptorSet = (reason: string): InputError =>
    new InputError(`${path} is not a binary descriptor set: it ${reason}. ${howToCreate}`);
  if (bytes[0] === 0x1f && bytes[1] === 0x8b) throw notADescriptorSet("is compressed with gzip");
  // 0x0a is the tag of `file`, the only field in a FileDescriptorSet.
  if (bytes[0] !== 0x0a)
    throw notADescriptorSet(isText(bytes) ? "is text" : "does not start with a FileDescriptorProto");
  try {
    return readDescriptorSet(bytes, labels && { allow: labels });
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
