// oxfmt-ignore
import { createFileRegistry, type DescMessage, fromBinary, fromJson, type JsonObject, type Message, toBinary,
  toJsonString } from "@bufbuild/protobuf";
import { base64Decode, base64Encode } from "@bufbuild/protobuf/wire";
import { FileDescriptorSetSchema } from "@bufbuild/protobuf/wkt";
import { readFileSync, readSync, writeSync } from "node:fs";
import { createBinaryReader, createBinaryWriter } from "../../../src/protobuf/messages/binary/index.ts";
import { createJsonMessageWriter, readJson } from "../../../src/protobuf/messages/json/index.ts";

// The program under test, as the runner starts it. Requests on stdin contain a message in one format, responses on
// stdout contain it in another. Each follows its length in four bytes, little-endian. conformance.proto describes both.
//
// The arguments are a file with descriptors, and `codegen` to use generated code.

const [descriptors = "", mode] = process.argv.slice(2);
const codegen = mode === "codegen";
const registry = createFileRegistry(fromBinary(FileDescriptorSetSchema, readFileSync(descriptors)));
const requestType = typeNamed("conformance.ConformanceRequest");
const responseType = typeNamed("conformance.ConformanceResponse");

/** A ConformanceRequest's members, in JSON. */
interface ConformanceRequest {
  readonly protobufPayload?: string;
  readonly jsonPayload?: string;
  readonly requestedOutputFormat?: string;
  readonly messageType?: string;
  readonly testCategory?: string;
}

interface Codecs {
  readonly readBinary: (bytes: Uint8Array) => Message;
  readonly writeBinary: (message: Message) => Uint8Array;
  readonly readJson: (text: string, unknownFields: "reject" | "ignore") => Message;
  readonly writeJson: (message: Message) => string;
}

const codecsByType = new Map<string, Codecs>();

for (let request = readRequest(); request !== undefined; request = readRequest()) writeResponse(convert(request));

function convert(request: ConformanceRequest): JsonObject {
  const { messageType = "", requestedOutputFormat, protobufPayload, jsonPayload, testCategory } = request;
  const isJson = requestedOutputFormat === "JSON";
  if (!isJson && requestedOutputFormat !== "PROTOBUF") return { skipped: `no writer of ${requestedOutputFormat}` };
  if (protobufPayload === undefined && jsonPayload === undefined) return { skipped: "no reader of this format" };
  const codecs = codecsByType.get(messageType) ?? createCodecs(typeNamed(messageType));
  codecsByType.set(messageType, codecs);
  const unknownFields = testCategory === "JSON_IGNORE_UNKNOWN_PARSING_TEST" ? "ignore" : "reject";
  let message: Message;
  try {
    message =
      jsonPayload === undefined
        ? codecs.readBinary(base64Decode(protobufPayload ?? ""))
        : codecs.readJson(jsonPayload, unknownFields);
  } catch (error) {
    return { parseError: String(error) };
  }
  try {
    return isJson
      ? { jsonPayload: codecs.writeJson(message) }
      : { protobufPayload: base64Encode(codecs.writeBinary(message)) };
  } catch (error) {
    return { serializeError: String(error) };
  }
}

function createCodecs(desc: DescMessage): Codecs {
  return {
    readBinary: createBinaryReader(desc, { codegen }),
    writeBinary: createBinaryWriter(desc, { codegen }),
    readJson: (text, unknownFields) => readJson(desc, text, { registry, codegen, unknownFields }),
    writeJson: createJsonMessageWriter(desc, { registry, codegen }),
  };
}

function typeNamed(name: string): DescMessage {
  const desc = registry.getMessage(name);
  if (desc === undefined) throw new Error(`unknown message type "${name}"`);
  return desc;
}

function readRequest(): ConformanceRequest | undefined {
  const length = readBytes(4)?.readUInt32LE();
  const bytes = length === undefined ? undefined : readBytes(length);
  if (bytes === undefined) return undefined;
  const request: ConformanceRequest = JSON.parse(toJsonString(requestType, fromBinary(requestType, bytes)));
  return request;
}

function writeResponse(members: JsonObject): void {
  const bytes = toBinary(responseType, fromJson(responseType, members));
  const length = Buffer.alloc(4);
  length.writeUInt32LE(bytes.byteLength);
  const response = Buffer.concat([length, bytes]);
  for (let written = 0; written < response.byteLength;) written += writeSync(1, response, written);
}

function readBytes(count: number): Buffer | undefined {
  const bytes = Buffer.alloc(count);
  for (let filled = 0; filled < count;) {
    const read = readSync(0, bytes, filled, count - filled, null);
    if (read === 0) return undefined;
    filled += read;
  }
  return bytes;
}
