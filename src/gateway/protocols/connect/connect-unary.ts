import { base64Decode } from "@bufbuild/protobuf/wire";
import type { Message } from "@bufbuild/protobuf";
import { Code, ConnectError } from "@connectrpc/connect";
import { codeToHttpStatus, errorToJsonBytes, parseTimeout } from "@connectrpc/connect/protocol-connect";
import type { Codec } from "../codec.ts";
import { type Encodings, negotiateEncodings, shortened } from "../call-header.ts";
import { messageTooLarge } from "../compression.ts";
import { decompressInTurn } from "../decompress-in-turn.ts";
import { type Exchange, type HeaderFields, prepareHeaderFields, toUtf8 } from "../../carriers/index.ts";
import { headerFieldsToSend, LazyHeaders, metadataFields } from "../lazy-headers.ts";
import type { Procedure, UnaryProcedure } from "../procedure.ts";
import type { ResponseParts, UnaryProtocol } from "../call-protocol.ts";

/** A unary call of the Connect protocol: POST, and GET for RPCs without side effects. */
export class ConnectUnary implements UnaryProtocol {
  readonly protocol = "connect";
  readonly timeoutMs: number | undefined;
  readonly problem: ConnectError | undefined;
  readonly bodyLimitBytes: number;
  readonly requestHeader: LazyHeaders;
  readonly responseHeader: LazyHeaders;
  readonly responseTrailer: LazyHeaders = new LazyHeaders([]);
  readonly #headerFields: HeaderFields;
  readonly #exchange: Exchange;
  readonly #procedure: UnaryProcedure;
  readonly #codec: Codec;
  readonly #encodings: Encodings;
  readonly #query: URLSearchParams | undefined;
  /** Whether an answer was given to its coding. */
  #encodes = false;

  /** @param query - the query of a GET, which holds the message; `undefined` for POST */
  constructor(
    exchange: Exchange,
    procedure: UnaryProcedure,
    format: "binary" | "json",
    query: URLSearchParams | undefined,
  ) {
    const { options } = procedure;
    const sent = query === undefined ? exchange.common.contentEncoding : query.get("compression");
    const accepted = exchange.get("accept-encoding");
    const timeout = parseTimeout(shortened(exchange.common.connectTimeoutMs), options.maxTimeoutMs);
    this.requestHeader = new LazyHeaders(exchange.fields);
    this.#exchange = exchange;
    this.#procedure = procedure;
    this.#codec = procedure.codecs[format];
    this.#query = query;
    this.#encodings = negotiateEncodings(options.acceptCompression, sent, accepted, "accept-encoding");
    this.timeoutMs = timeout.timeoutMs;
    this.problem = versionProblem(exchange, procedure, query) ?? this.#encodings.problem ?? timeout.error;
    this.bodyLimitBytes = options.readMaxBytes;
    const contentType = format === "binary" ? protoHeader : jsonHeader;
    const { acceptFields } = this.#encodings;
    this.#headerFields = acceptFields.length === 0 ? contentType : [...contentType, ...acceptFields];
    this.responseHeader = new LazyHeaders(this.#headerFields);
  }

  readMessage(body: Uint8Array): Message | Promise<Message> {
    const { readMaxBytes } = this.#procedure.options;
    const bytes = this.#query === undefined ? body : messageOfQuery(this.#query);
    if (bytes.byteLength > readMaxBytes) throw messageTooLarge(readMaxBytes);
    const compression = this.#encodings.request;
    if (compression === undefined) return this.#codec.decode(bytes);
    const plain = decompressInTurn(compression, bytes, readMaxBytes, this.#exchange);
    return plain.then((message) => this.#codec.decode(message));
  }

  writeMessage(response: ResponseParts): void | Promise<void> {
    const header = headerFieldsToSend(response.header, this.#headerFields);
    return this.#answer(200, header, response.trailer, this.#codec.encode(response.message));
  }

  writeError(error: ConnectError): void | Promise<void> {
    const { responseHeader: header, responseTrailer: trailer } = this;
    const body = errorToJsonBytes(error, this.#procedure.options.jsonOptions);
    header.set("content-type", "application/json");
    const fields = [...header.fields, ...metadataFields(error)];
    return this.#answer(codeToHttpStatus(error.code), fields, trailer, body);
  }

  #answer(httpStatus: number, header: HeaderFields, trailer: Headers, body: Uint8Array): void | Promise<void> {
    const fields = withTrailer(header, trailer);
    const compression = this.#encodings.response;
    // An error that comes while an answer is being encoded, or because that has failed, is sent at once as it is.
    if (compression === undefined || this.#encodes || body.byteLength < this.#procedure.options.compressMinBytes) {
      return this.#exchange.answer(httpStatus, fields, body);
    }
    this.#encodes = true;
    return compression
      .compress(body)
      .then((packed) => this.#exchange.answer(httpStatus, [...fields, "content-encoding", compression.name], packed));
  }
}

/** Returns what is wrong with the protocol version, if the options require one. */
export function versionProblem(
  exchange: Exchange,
  { options }: Procedure,
  query: URLSearchParams | undefined,
): ConnectError | undefined {
  if (!options.requireConnectProtocolHeader) return undefined;
  if (query !== undefined) {
    if (query.get("connect") === "v1") return undefined;
    return new ConnectError('the parameter connect must be "v1"', Code.InvalidArgument);
  }
  if (exchange.common.connectProtocolVersion === "1") return undefined;
  return new ConnectError('the header Connect-Protocol-Version must be "1"', Code.InvalidArgument);
}

/** Answers a Connect request that never became a call. */
export function refuseConnect(exchange: Exchange, httpStatus: number, error: ConnectError, fields: HeaderFields): void {
  exchange.answer(httpStatus, [...jsonHeader, ...fields, ...metadataFields(error)], errorToJsonBytes(error, undefined));
}

const protoHeader: HeaderFields = prepareHeaderFields("content-type", "application/proto");
const jsonHeader: HeaderFields = prepareHeaderFields("content-type", "application/json");

/** Adds the trailer, which unary calls of Connect send as header fields with a prefix. */
function withTrailer(header: HeaderFields, trailer: Headers): HeaderFields {
  const fields = headerFieldsToSend(trailer, []);
  return fields.length === 0
    ? header
    : [...header, ...fields.map((field, i) => (i % 2 === 0 ? `trailer-${field}` : field))];
}

function messageOfQuery(query: URLSearchParams): Uint8Array {
  const message = query.get("message") ?? "";
  if (query.get("base64") !== "1") return toUtf8(message);
  try {
    return base64Decode(message);
  } catch {
    throw new ConnectError("the parameter message is not valid base64", Code.InvalidArgument);
  }
}
