import { base64Decode } from "@bufbuild/protobuf/wire";
import type { Message } from "@bufbuild/protobuf";
import { Code, ConnectError, type UnaryResponse } from "@connectrpc/connect";
import { codeToHttpStatus, errorToJsonBytes, parseTimeout } from "@connectrpc/connect/protocol-connect";
import type { Codec } from "./codec.ts";
import { type Encodings, messageTooLarge, negotiateEncodings } from "./compression.ts";
import type { Exchange } from "./exchange.ts";
import { fieldsOf } from "./grpc-unary.ts";
import { type HeaderFields, type LazyHeaders, readField } from "./header-fields.ts";
import { metadataFields } from "./metadata-fields.ts";
import type { Procedure, UnaryProcedure } from "./procedure.ts";
import type { UnaryWire } from "./unary-wire.ts";

/** A unary call of the Connect protocol: POST, and GET for an RPC without side effects. */
export class ConnectUnary implements UnaryWire {
  readonly protocol = "connect";
  readonly timeoutMs: number | undefined;
  readonly problem: ConnectError | undefined;
  readonly bodyLimitBytes: number;
  readonly headerFields: HeaderFields;
  readonly trailerFields: HeaderFields = [];
  readonly #exchange: Exchange;
  readonly #procedure: Procedure;
  readonly #codec: Codec;
  readonly #encodings: Encodings;
  readonly #query: URLSearchParams | undefined;

  /** @param query - the query of a GET, where the message is; `undefined` for POST */
  constructor(
    exchange: Exchange,
    procedure: Procedure,
    unary: UnaryProcedure,
    format: "binary" | "json",
    query: URLSearchParams | undefined,
  ) {
    const { options } = procedure;
    const { fields } = exchange;
    const sent = query === undefined ? readField(fields, "content-encoding") : query.get("compression");
    const accepted = readField(fields, "accept-encoding");
    const timeout = parseTimeout(readField(fields, "connect-timeout-ms"), options.maxTimeoutMs);
    this.#exchange = exchange;
    this.#procedure = procedure;
    this.#codec = unary.codecs[format];
    this.#query = query;
    this.#encodings = negotiateEncodings(options.acceptCompression, sent, accepted, "accept-encoding");
    this.timeoutMs = timeout.timeoutMs;
    this.problem = this.#versionProblem() ?? this.#encodings.problem ?? timeout.error;
    this.bodyLimitBytes = options.readMaxBytes;
    const contentType = format === "binary" ? protoHeader : jsonHeader;
    const { acceptFields } = this.#encodings;
    this.headerFields = acceptFields.length === 0 ? contentType : [...contentType, ...acceptFields];
  }

  readMessage(body: Uint8Array): Message | Promise<Message> {
    const { readMaxBytes } = this.#procedure.options;
    const bytes = this.#query === undefined ? body : messageOfQuery(this.#query);
    if (bytes.byteLength > readMaxBytes) throw messageTooLarge(readMaxBytes);
    const compression = this.#encodings.request;
    if (compression === undefined) return this.#codec.decode(bytes);
    return compression.decompress(bytes, readMaxBytes).then((plain) => this.#codec.decode(plain));
  }

  writeMessage(response: UnaryResponse): void | Promise<void> {
    const header = fieldsOf(response.header, this.headerFields);
    return this.#answer(200, header, response.trailer, this.#codec.encode(response.message));
  }

  writeError(error: ConnectError, header: LazyHeaders, trailer: LazyHeaders): void | Promise<void> {
    const body = errorToJsonBytes(error, this.#procedure.options.jsonOptions);
    header.set("content-type", "application/json");
    const fields = [...header.fields, ...metadataFields(error)];
    return this.#answer(codeToHttpStatus(error.code), fields, trailer, body);
  }

  #answer(httpStatus: number, header: HeaderFields, trailer: Headers, body: Uint8Array): void | Promise<void> {
    const fields = withTrailer(header, trailer);
    const compression = this.#encodings.response;
    if (compression === undefined || body.byteLength < this.#procedure.options.compressMinBytes) {
      return this.#exchange.answer(httpStatus, fields, body);
    }
    return compression
      .compress(body)
      .then((packed) => this.#exchange.answer(httpStatus, [...fields, "content-encoding", compression.name], packed));
  }

  #versionProblem(): ConnectError | undefined {
    if (!this.#procedure.options.requireConnectProtocolHeader) return undefined;
    if (this.#query !== undefined) {
      if (this.#query.get("connect") === "v1") return undefined;
      return new ConnectError('the parameter connect must be "v1"', Code.InvalidArgument);
    }
    if (readField(this.#exchange.fields, "connect-protocol-version") === "1") return undefined;
    return new ConnectError('the header Connect-Protocol-Version must be "1"', Code.InvalidArgument);
  }
}

/** Answers a Connect request that never became a call. */
export function refuseConnect(exchange: Exchange, httpStatus: number, error: ConnectError, fields: HeaderFields): void {
  exchange.answer(httpStatus, [...jsonHeader, ...fields, ...metadataFields(error)], errorToJsonBytes(error, undefined));
}

const protoHeader: HeaderFields = Object.freeze(["content-type", "application/proto"]);
const jsonHeader: HeaderFields = Object.freeze(["content-type", "application/json"]);

/** Connect sends the trailer of a unary call as header fields with a prefix. */
function withTrailer(header: HeaderFields, trailer: Headers): HeaderFields {
  const fields = fieldsOf(trailer, []);
  return fields.length === 0
    ? header
    : [...header, ...fields.map((field, i) => (i % 2 === 0 ? `trailer-${field}` : field))];
}

function messageOfQuery(query: URLSearchParams): Uint8Array {
  const message = query.get("message") ?? "";
  if (query.get("base64") !== "1") return Buffer.from(message);
  try {
    return base64Decode(message);
  } catch {
    throw new ConnectError("the parameter message is not valid base64", Code.InvalidArgument);
  }
}
