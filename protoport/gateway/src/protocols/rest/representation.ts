import { create, isMessage, type Message, toBinary } from "@bufbuild/protobuf";
import { BinaryWriter, WireType } from "@bufbuild/protobuf/wire";
import type { ConnectError } from "@connectrpc/connect";
import { type BodyPlan, type Exchange, noBytes, parseMediaType, toUtf8 } from "../../http/index.ts";
import { createBinaryWriter, findField, loadField } from "../../protobuf/index.ts";
import { serialize } from "../formats.ts";
import type { Rpc } from "../rpc.ts";
import { negotiateType } from "../shared/negotiation.ts";
import {
  type ErrorRecordWriter,
  type ErrorResponse,
  findParameter,
  findProtoField,
  type HttpPattern,
  prettyType,
  protobufTypes,
  type RestBinding,
  type RestFailure,
  type RestResponse,
  type SelectFields,
} from "./rules/index.ts";

/** A response format other than JSON in one line. */
export interface Representation {
  readonly contentType: string;
  write(message: Message, select: SelectFields | undefined): RestResponse;
  writeError(error: ConnectError, failure: RestFailure): ErrorResponse;
}

/** The response formats that a rule offers in addition to JSON in one line. */
interface Representations {
  /** Returns the representation that a request asks for, or `undefined` for JSON in one line. */
  choose(exchange: Exchange, query: string): Representation | undefined;
  /** Decodes a request in the binary format. `undefined` if the rule does not accept the binary format. */
  readonly decodeProtobuf: ((bytes: Uint8Array) => Message) | undefined;
}

/**
 * Creates a rule's representations. Returns `undefined` if the rule offers only JSON in one line.
 *
 * As in grpc-gateway, a response has the format that `Accept` names, or otherwise the request's format. The parameter
 * `pretty` is a convention in grpc-gateway's documentation.
 */
export function createRepresentations(
  rpc: Rpc,
  binding: RestBinding,
  writeErrorRecord: ErrorRecordWriter,
): Representations | undefined {
  const { acceptsProtobuf, hasPrettyJson } = binding;
  if (!acceptsProtobuf && !hasPrettyJson) return undefined;
  const pretty = hasPrettyJson ? createPretty(binding, writeErrorRecord) : undefined;
  const writeMessage = acceptsProtobuf ? createProtobufWriter(rpc, binding.pattern) : undefined;
  const protobufs =
    writeMessage === undefined
      ? []
      : protobufTypes.map((type) => createProtobuf(type, binding, writeMessage, writeErrorRecord));
  const { contentType } = binding.options;
  const json = { contentType };
  const offered = [json, ...(pretty === undefined ? [] : [pretty]), ...protobufs];
  // A parameter `pretty` that names a request field sets this field.
  const isParameter = pretty !== undefined && findField(rpc.method.input, "pretty") === undefined;
  const { proto } = rpc.codecs;
  return {
    decodeProtobuf: acceptsProtobuf ? (bytes) => proto.decode(bytes) : undefined,
    choose(exchange, query) {
      const sent = exchange.common.contentType;
      if (isParameter && query.includes("pretty") && findParameter(query, ["pretty"]) !== undefined) return pretty;
      const sentType = sent === null || sent === contentType ? undefined : parseMediaType(sent)?.type;
      const fallback = protobufs.find((each) => each.contentType === sentType) ?? json;
      const chosen = negotiateType(exchange.get("accept"), { offered, fallback });
      return [pretty, ...protobufs].find((each) => each === chosen);
    },
  };
}

function createPretty(binding: RestBinding, writeErrorRecord: ErrorRecordWriter): Representation {
  const indent = <Response extends RestResponse>(response: Response): Response =>
    response.body === undefined ? response : { ...response, body: toUtf8(indentJson(utf8.decode(response.body))) };
  return {
    contentType: prettyType,
    write: (message, select) => indent(binding.preparedResponse ?? binding.encode(message, select)),
    writeError: (error, failure) => indent(writeErrorRecord(error, failure)),
  };
}

const utf8 = new TextDecoder();

/** Indents one-line JSON by two spaces. Parsing would not preserve `-0` and the order of keys that are numbers. */
function indentJson(json: string): string {
  let depth = 0;
  let isString = false;
  const line = (): string => `\n${"  ".repeat(depth)}`;
  // The regular expression does not match complete strings, because a string of ten megabytes would overflow its stack.
  return json.replaceAll(/\\.|\{\}|\[\]|["{}[\],:]/g, (token) => {
    if (token === '"') isString = !isString;
    if (isString || token === '"') return token;
    if (token === "{" || token === "[") {
      depth += 1;
      return token + line();
    }
    if (token === "}" || token === "]") {
      depth -= 1;
      return line() + token;
    }
    if (token === ",") return token + line();
    return token === ":" ? ": " : token;
  });
}

function createProtobuf(
  contentType: string,
  { preparedResponse }: RestBinding,
  writeMessage: (message: Message) => Uint8Array,
  writeErrorRecord: ErrorRecordWriter,
): Representation {
  return {
    contentType,
    write: (message) =>
      preparedResponse !== undefined && preparedResponse.body === undefined
        ? preparedResponse
        : { httpStatus: 200, contentType, body: writeMessage(message) },
    writeError: (error, failure) =>
      writeErrorRecord.isStatus
        ? { httpStatus: failure.httpStatus, contentType, body: encodeStatusDetails(error) }
        : writeErrorRecord(error, failure),
  };
}

/** Returns the function that encodes a response body in binary, or `undefined` if the body is not a message. */
function createProtobufWriter(
  { method, codecs, options }: Rpc,
  { responseBody }: HttpPattern,
): ((message: Message) => Uint8Array) | undefined {
  if (responseBody === "") {
    return (message) => codecs.proto.encode(message);
  }
  const field = findProtoField(method.output, responseBody);
  if (field?.fieldKind !== "message") return undefined;
  const write = createBinaryWriter(field.message, options.binaryOptions);
  return (message) => {
    const body = loadField(message, field);
    return isMessage(body) ? serialize(() => write(body), options.writeMaxBytes) : noBytes;
  };
}

/** Encodes an error as google.rpc.Status, with the fields `code` (1), `message` (2) and `details` (3). */
function encodeStatusDetails({ code, rawMessage, details }: ConnectError): Uint8Array {
  const writer = new BinaryWriter();
  writer.tag(1, WireType.Varint).int32(code);
  writer.tag(2, WireType.LengthDelimited).string(rawMessage);
  for (const detail of details) {
    const [type, value] =
      "desc" in detail
        ? [detail.desc.typeName, toBinary(detail.desc, create(detail.desc, detail.value))]
        : [detail.type, detail.value];
    writer.tag(3, WireType.LengthDelimited).fork();
    writer.tag(1, WireType.LengthDelimited).string(`type.googleapis.com/${type}`);
    writer.tag(2, WireType.LengthDelimited).bytes(value).join();
  }
  return writer.finish();
}

/** An RPC's rule, prepared before the first call. */
export interface RestRule {
  readonly rpc: Rpc;
  readonly binding: RestBinding;
  /** The plan for reading a body with one message, or `undefined` if the rule ignores the body. */
  readonly body: BodyPlan | undefined;
  readonly writeErrorRecord: ErrorRecordWriter;
  /** The message representations other than JSON in one line, or `undefined` if there are none. */
  readonly representations: Representations | undefined;
}

/** The rule that a request matches, with the path variables and the query. */
export interface MatchedRule {
  readonly rule: RestRule;
  /** The variable values in the path template. */
  readonly captures: readonly string[];
  /** The query as sent, without the question mark. */
  readonly query: string;
}
