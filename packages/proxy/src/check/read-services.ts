import { createReadStream } from "node:fs";
import type { DescService } from "@bufbuild/protobuf";
import { type DescribedServices, NotADescriptorSet, readDescriptorSet } from "@plantstore/gateway/internal/descriptors";
import { messageOf } from "@plantstore/gateway/internal/errors";

/** Bytes of a file that is read: all of Google's APIs are 30 MB, and a file that is no definition may be anything. */
const fileMaxBytes = 200 * 1024 * 1024;

/** Why a file or an argument cannot be used, in a sentence for whoever typed the command. */
export class InputProblem extends Error {}

/**
 * Reads the services of a file with a binary google.protobuf.FileDescriptorSet, or an image of buf, which is one too.
 *
 * @throws InputProblem for a file that is none, or none of whose services has all types that it needs
 */
export async function readServices(path: string): Promise<ReadServices> {
  const bytes = await readBytes(path);
  const { services, omitted } = describe(path, bytes);
  const left = [...omitted].map(([name, reason]) => `${name} is left out: ${reason}. ${howTo}`);
  if (services.length > 0) return { services, omitted: left };
  throw new InputProblem(left[0] ?? `${path} has no service in it`);
}

/** The services of a file, and in a sentence each those that lack a type. */
interface ReadServices {
  readonly services: readonly DescService[];
  readonly omitted: readonly string[];
}

const howTo = "Make it by `buf build -o set.binpb`, or `protoc --include_imports --descriptor_set_out=set.binpb`";

/**
 * Reads a file, or what comes out of a pipe.
 *
 * @throws InputProblem if it cannot be read, is empty, or is larger than {@link fileMaxBytes}
 */
export async function readBytes(path: string): Promise<Uint8Array> {
  const pieces: Uint8Array[] = [];
  let length = 0;
  try {
    // A byte more than is allowed tells that there is more.
    for await (const piece of createReadStream(path, { end: fileMaxBytes })) {
      pieces.push(piece);
      length += piece.length;
    }
  } catch (error) {
    throw new InputProblem(`${path} cannot be read: ${messageOf(error)}`);
  }
  if (length > fileMaxBytes) throw new InputProblem(`${path} is larger than ${fileMaxBytes} bytes`);
  if (length === 0) throw new InputProblem(`${path} is empty. ${howTo}`);
  return Buffer.concat(pieces, length);
}

function describe(path: string, bytes: Uint8Array): DescribedServices {
  const none = (reason: string): InputProblem =>
    new InputProblem(`${path} is no binary descriptor set: it ${reason}. ${howTo}`);
  if (bytes[0] === 0x1f && bytes[1] === 0x8b) throw none("is compressed by gzip");
  // The tag of a set's only field, `file`.
  if (bytes[0] !== 0x0a) throw none(isText(bytes) ? "is text" : "begins with something else than a file");
  try {
    return readDescriptorSet(bytes);
  } catch (error) {
    if (!(error instanceof NotADescriptorSet))
      throw new InputProblem(`${path} is no valid definition: ${messageOf(error)}`);
    throw none(isText(bytes) ? "is text" : `is cut short, or no protobuf (${messageOf(error)})`);
  }
}

/** Returns whether what a file begins with is text, as .proto files and descriptor sets in JSON are. */
function isText(bytes: Uint8Array): boolean {
  // eslint-disable-next-line no-control-regex
  return !/[\x00-\x08\x0e-\x1f\x7f-\xff]/.test(Buffer.from(bytes.subarray(0, 1000)).toString("latin1"));
}
