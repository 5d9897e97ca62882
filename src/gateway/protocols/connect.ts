import { base64Decode } from "@bufbuild/protobuf/wire";
import type { Message } from "@bufbuild/protobuf";
import { Code, type ConnectError } from "@connectrpc/connect";
import {
  codeToHttpStatus,
  endStreamFlag,
  endStreamToJson,
  errorToJsonBytes,
} from "@connectrpc/connect/protocol-connect";
import { codedError } from "../errors/index.ts";
import { concatBytes, type Exchange, type HeaderFields, prepareHeaderFields, toUtf8 } from "../carriers/index.ts";
import type { Codec } from "./codec.ts";
import { messageTooLarge } from "./compression.ts";
import { spell, type Spelling, spelledContentType } from "./content-type.ts";
import { decompressInTurn } from "./decompress-in-turn.ts";
import { writeEnvelope } from "./envelope.ts";
import { EnvelopedCall, type Encodings, negotiateEncodings } from "./enveloped-call.ts";
import { appendOwnMetadata, metadataFields, withoutMetadata } from "./error-metadata.ts";
import { headerFieldsToSend, LazyHeaders } from "./lazy-headers.ts";
import type { Procedure, UnaryProcedure, ResponseParts } from "./procedure.ts";
import type { CallTarget, Protocol, UnaryWire } from "./protocol.ts";
import { createRpcTarget } from "./target.ts";
import { readConnectTimeout } from "./timeouts.ts";

/** The Connect protocol (https://connectrpc.com/docs/protocol). */
export const connect: Protocol = {
  name: "connect",
  hasHttpStatus: true,
  targetsOf(procedure) {
    if (procedure.options.connect === false) return [];
    return [...procedure.codecs].map(([format, codec]) => {
      const isUnary = procedure.kind === "unary";
      const [contentType, spelling] = spell(`application/${isUnary ? "" : "connect+"}${format}`, codec);
      if (isUnary) return [contentType, unaryTarget(procedure, spelling, undefined)];
      return [contentType, createRpcTarget(connect, procedure, (e) => new ConnectStream(e, procedure, spelling))];
    });
  },
  targetOfGet(procedure, query) {
    const parameters = new URLSearchParams(query);
    const format = parameters.get("encoding") ?? "";
    const codec = procedure.codecs.get(format);
    return codec && unaryTarget(procedure, spell(`application/${format}`, codec)[1], parameters);
  },
  claims({ common: { contentType, connectProtocolVersion } }) {
    return connectProtocolVersion !== null || contentType?.toLowerCase().startsWith("application/connect+") === true;
  },
  refuse(exchange, { httpStatus, error, fields, target }) {
    if (target?.kind === "stream") {
      // Clients look for the error of a stream in the message that ends it alone ("Streaming-Response").
      const contentType = spelledContentType(exchange.common.contentType ?? "");
      return exchange.answer(200, ["content-type", contentType], endOfStream(new Headers(), error));
    }
    const body = errorToJsonBytes(error, undefined);
    exchange.answer(httpStatus, [...jsonHeader, ...fields, ...metadataFields(error)], body);
  },
};

/** @param query - the query of a GET, which holds the message; `undefined` for POST */
function unaryTarget(procedure: UnaryProcedure, spelling: Spelling, query: URLSearchParams | undefined): CallTarget {
  const open = (exchange: Exchange): UnaryWire => new ConnectUnary(exchange, procedure, spelling, query);
  return { kind: "unary", protocol: connect, procedure, pathTemplate: undefined, open };
}

/** A unary call of the Connect protocol: POST, and GET for RPCs without side effects. */
class ConnectUnary implements UnaryWire {
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
  #isUncoded = false;

  /** @param query - the query of a GET, which holds the message; `undefined` for POST */
  constructor(exchange: Exchange, procedure: UnaryProcedure, spelling: Spelling, query: URLSearchParams | undefined) {
    const { options } = procedure;
    const sent = query === undefined ? exchange.common.contentEncoding : query.get("compression");
    const accepted = exchange.get("accept-encoding");
    const timeout = readConnectTimeout(exchange.common, options.maxTimeoutMs);
    this.requestHeader = new LazyHeaders(exchange.fields);
    this.#exchange = exchange;
    this.#procedure = procedure;
    this.#codec = spelling.codec;
    this.#query = query;
    this.#encodings = negotiateEncodings(options.acceptCompression, sent, accepted, "accept-encoding");
    this.timeoutMs = timeout.timeoutMs;
    this.problem = versionProblem(exchange, procedure, query) ?? this.#encodings.problem ?? timeout.error;
    this.bodyLimitBytes = options.readMaxBytes;
    const { contentType } = spelling;
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

  giveUpCoding(): void {
    this.#isUncoded = true;
  }

  #answer(httpStatus: number, header: HeaderFields, trailer: Headers, body: Uint8Array): void | Promise<void> {
    const fields = withTrailer(header, trailer);
    const compression = this.#encodings.response;
    if (compression === undefined || this.#isUncoded || body.byteLength < this.#procedure.options.compressMinBytes) {
      return this.#exchange.answer(httpStatus, fields, body);
    }
    return compression
      .compress(body)
      .then((packed) => this.#exchange.answer(httpStatus, [...fields, "content-encoding", compression.name], packed));
  }
}

/** A streaming call of the Connect protocol. Its body ends with an envelope for trailer and error. */
class ConnectStream extends EnvelopedCall {
  readonly responseTrailer: LazyHeaders = new LazyHeaders([]);

  constructor(exchange: Exchange, procedure: Procedure, spelling: Spelling) {
    const { acceptCompression, maxTimeoutMs } = procedure.options;
    const sent = exchange.get("connect-content-encoding");
    const accepted = exchange.get("connect-accept-encoding");
    super(exchange, procedure, spelling, {
      encodings: negotiateEncodings(acceptCompression, sent, accepted, "connect-accept-encoding"),
      timeout: readConnectTimeout(exchange.common, maxTimeoutMs),
      encodingName: "connect-content-encoding",
      problem: versionProblem(exchange, procedure, undefined),
    });
  }

  end(trailer: Headers, error: ConnectError | undefined): void {
    // The body ends right after this, whether or not the client reads it.
    void this.write(endOfStream(trailer, error));
    this.exchange.end();
  }

  answer(header: HeaderFields, bytes: Uint8Array, trailer: Headers, error: ConnectError | undefined): void {
    this.exchange.answer(200, header, concatBytes([bytes, endOfStream(trailer, error)]));
  }
}

/** Returns what is wrong with the protocol version, if the options require one. */
function versionProblem(
  exchange: Exchange,
  { options }: Procedure,
  query: URLSearchParams | undefined,
): ConnectError | undefined {
  if (!options.requireConnectProtocolHeader) return undefined;
  if (query !== undefined) {
    if (query.get("connect") === "v1") return undefined;
    return codedError("ERR_PROTOCOL", 'the parameter connect must be "v1"', Code.InvalidArgument);
  }
  if (exchange.common.connectProtocolVersion === "1") return undefined;
  return codedError("ERR_PROTOCOL", 'the header Connect-Protocol-Version must be "1"', Code.InvalidArgument);
}

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
    throw codedError("ERR_PROTOCOL", "the parameter message is not valid base64", Code.InvalidArgument);
  }
}

function endOfStream(trailer: Headers, error: ConnectError | undefined): Uint8Array {
  if (error !== undefined) appendOwnMetadata(trailer, error);
  const end = endStreamToJson(trailer, error && withoutMetadata(error), undefined);
  return writeEnvelope(endStreamFlag, toUtf8(JSON.stringify(end)));
}
