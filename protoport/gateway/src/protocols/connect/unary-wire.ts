import type { Message } from "@bufbuild/protobuf";
import { base64Decode } from "@bufbuild/protobuf/wire";
import type { ConnectError } from "@connectrpc/connect";
import { codeToHttpStatus, errorToJsonBytes } from "@connectrpc/connect/protocol-connect";
import { type BodyPlan, type Exchange, type HeaderFields, toUtf8 } from "../../http/index.ts";
import { problem } from "../../protobuf/index.ts";
import { decompressQueued, messageTooLargeError } from "../envelope/compression.ts";
import { type Content, Envelope, type Take, toEnvelope } from "../envelope/envelope.ts";
import type { Codec } from "../formats.ts";
import { headerFieldsToSend, LazyHeaders } from "../lazy-headers.ts";
import type { Wire } from "../protocol.ts";
import type { Rpc } from "../rpc.ts";
import type { CallFormat } from "../shared/content-type.ts";
import { metadataFields } from "../shared/error-metadata.ts";
import { type MessageEncodings, negotiateEncodings, varyByCoding } from "../shared/negotiation.ts";
import { readConnectTimeout } from "../shared/timeouts.ts";

/** A unary call in the Connect protocol. The method is POST, or GET for RPCs without side effects. */
export class ConnectUnaryWire implements Wire {
  readonly timeoutMs: number | undefined;
  readonly problem: ConnectError | undefined;
  readonly body: BodyPlan;
  readonly requestHeader: LazyHeaders;
  readonly responseHeader: LazyHeaders;
  readonly responseTrailer: LazyHeaders = new LazyHeaders([]);
  readonly #headerFields: HeaderFields;
  readonly #exchange: Exchange;
  readonly #rpc: Rpc;
  readonly #codec: Codec;
  readonly #encodings: MessageEncodings;
  readonly #query: URLSearchParams | undefined;

  /** @param query - the query of a GET request, which contains the message, or `undefined` for POST */
  constructor(exchange: Exchange, rpc: Rpc, format: CallFormat, query: URLSearchParams | undefined) {
    const { options } = rpc;
    const encoding = query === undefined ? exchange.common.contentEncoding : query.get("compression");
    const accepted = exchange.get("accept-encoding");
    const timeout = readConnectTimeout(exchange.get("connect-timeout-ms"), options.maxTimeoutMs);
    this.requestHeader = new LazyHeaders(exchange.fields);
    this.#exchange = exchange;
    this.#rpc = rpc;
    this.#codec = format.codec;
    this.#query = query;
    this.#encodings = negotiateEncodings(options.acceptCompression, encoding, accepted, "accept-encoding");
    this.timeoutMs = timeout.timeoutMs;
    this.problem = versionProblem(exchange, rpc, query) ?? this.#encodings.problem ?? timeout.error;
    this.body = format.body;
    const { contentType } = format;
    const { acceptEncodingFields } = this.#encodings;
    this.#headerFields = acceptEncodingFields.length === 0 ? contentType : [...contentType, ...acceptEncodingFields];
    this.responseHeader = new LazyHeaders(this.#headerFields);
  }

  get carries(): Wire["carries"] {
    return this.#codec.isBinary === true ? "envelopes" : "messages";
  }

  read<T>(body: Uint8Array, take: Take<T>): Message | T | Promise<Message | T> {
    const bytes = this.#readBytes(body);
    if (!(bytes instanceof Promise)) return this.#take(bytes, take);
    return bytes.then((decompressed) => this.#take(decompressed, take));
  }

  #take<T>(bytes: Uint8Array, take: Take<T>): Message | T {
    return this.#codec.isBinary === true ? take(toEnvelope(bytes)) : this.#codec.decode(bytes);
  }

  readParts(): undefined {}

  #readBytes(body: Uint8Array): Uint8Array | Promise<Uint8Array> {
    const { readMaxBytes } = this.#rpc.options;
    const bytes = this.#query === undefined ? body : messageOfQuery(this.#query);
    if (bytes.byteLength > readMaxBytes) throw messageTooLargeError(readMaxBytes);
    const compression = this.#encodings.request;
    return compression === undefined ? bytes : decompressQueued(compression, bytes, readMaxBytes, this.#exchange);
  }

  write(message: Content, header: Headers, trailer: Headers): void | Promise<void> {
    const bytes = message instanceof Envelope ? message.bytes : this.#codec.encode(message);
    return this.#respond(200, headerFieldsToSend(header, this.#headerFields), trailer, bytes, true);
  }

  writeError(error: ConnectError, mayCompress: boolean): void | Promise<void> {
    const { responseHeader: header, responseTrailer: trailer } = this;
    header.set("content-type", "application/json");
    const { fields, body } = unaryError(error, header.fields, this.#rpc.options.jsonOptions);
    return this.#respond(codeToHttpStatus(error.code), fields, trailer, body, mayCompress);
  }

  release(): void {}

  #respond(
    httpStatus: number,
    header: HeaderFields,
    trailer: Headers,
    body: Uint8Array,
    mayCompress: boolean,
  ): void | Promise<void> {
    let fields = withTrailer(header, trailer);
    if (body.byteLength < this.#rpc.options.compressMinBytes) return this.#exchange.respond(httpStatus, fields, body);
    const compression = mayCompress ? this.#encodings.response : undefined;
    // Caches may store the response to a GET.
    if (this.#query !== undefined) fields = varyByCoding(fields, compression);
    if (compression === undefined) return this.#exchange.respond(httpStatus, fields, body);
    return compression
      .compress(body)
      .then((compressed) =>
        this.#exchange.respond(httpStatus, [...fields, "content-encoding", compression.name], compressed),
      );
  }
}

/** Adds the trailer, which unary Connect calls send as header fields with the prefix `trailer-`. */
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
    throw problem("ERR_PROTOCOL", 'query parameter "message" is not valid base64');
  }
}

const option = "requireConnectProtocolHeader";

/** Returns the error for a wrong or missing protocol version, if the RPC's options require a version. */
export function versionProblem(
  exchange: Exchange,
  { options }: Rpc,
  query: URLSearchParams | undefined,
): ConnectError | undefined {
  if (!options.requireConnectProtocolHeader) return undefined;
  if (query !== undefined) {
    if (query.get("connect") === "v1") return undefined;
    return problem("ERR_PROTOCOL", 'query parameter "connect" must be "v1"', { option });
  }
  if (exchange.get("connect-protocol-version") === "1") return undefined;
  return problem("ERR_PROTOCOL", 'the header Connect-Protocol-Version must be "1"', { option });
}

/**
 * Returns an error as a unary response's header and body ("Error" in the specification).
 *
 * @param header - other response header fields
 */
export function unaryError(
  error: ConnectError,
  header: HeaderFields,
  jsonOptions: Parameters<typeof errorToJsonBytes>[1],
): { readonly fields: HeaderFields; readonly body: Uint8Array } {
  return { fields: [...header, ...metadataFields(error)], body: errorToJsonBytes(error, jsonOptions) };
}
