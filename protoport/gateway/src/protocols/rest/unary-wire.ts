import type { Message } from "@bufbuild/protobuf";
import type { ConnectError } from "@connectrpc/connect";
import type { Compression } from "@connectrpc/connect/protocol";
import { type BodyPlan, type Exchange, type HeaderFields, noBytes, statusesWithoutBody } from "../../http/index.ts";
import { problem } from "../../protobuf/index.ts";
import { decodesPieces, decompressQueued, type PieceDecompression } from "../envelope/compression.ts";
import { type MessageSplitter, readMessages } from "../envelope/message-splitter.ts";
import { clientGoneError } from "../http-error.ts";
import { areUnchanged, LazyHeaders } from "../lazy-headers.ts";
import type { RequestMessages, StreamTraits, StreamWire, Wire } from "../protocol.ts";
import { negotiateCoding, readContentCoding, varyByCoding } from "../shared/negotiation.ts";
import { readRestTimeout } from "../shared/timeouts.ts";
import {
  type RestErrorResponse,
  restTrailerOf,
  toErrorResponse,
  withRequestMetadata,
  withResponseMetadata,
} from "./error-response.ts";
import { JsonValueReader } from "./json-value-reader.ts";
import { LineReader } from "./line-reader.ts";
import type { MatchedRule, Representation, RestRule } from "./representation.ts";
import { statusOfHandler, toRestHeader, withSecurityFields } from "./response-header.ts";
import { httpStatusOf, type RequestStream, type SelectFields } from "./rules/index.ts";

/** The wire for a unary call through a `google.api.http` rule. */
export class RestUnaryWire implements Wire {
  readonly carries = "messages";
  readonly timeoutMs: number | undefined;
  readonly problem: unknown;
  readonly body: BodyPlan | undefined;
  readonly requestHeader: LazyHeaders;
  readonly responseHeader: LazyHeaders;
  readonly responseTrailer: LazyHeaders;
  protected readonly exchange: Exchange;
  protected readonly rule: RestRule;
  readonly #matched: MatchedRule;
  /** The request body's coding, or `undefined` without `Content-Encoding`. */
  readonly #coding: BodyCoding | undefined;
  /** Selects the response fields, or `undefined` if the response has all fields. */
  protected readonly select: SelectFields | undefined;
  /** The response format, or `undefined` for JSON in one line. */
  readonly #representation: Representation | undefined;

  constructor(exchange: Exchange, matched: MatchedRule) {
    const { rule, query } = matched;
    const { rpc, binding, body } = rule;
    const { acceptCompression, maxTimeoutMs } = rpc.options;
    const { contentType, contentEncoding, expect } = exchange.common;
    const { fields } = exchange;
    const { grpcMetadata } = binding.options;
    this.requestHeader = new LazyHeaders(grpcMetadata ? withRequestMetadata(fields, rpc.callee) : fields);
    this.responseHeader = new LazyHeaders(noFields);
    this.responseTrailer = new LazyHeaders(noFields);
    this.exchange = exchange;
    this.rule = rule;
    this.#matched = matched;
    this.body = body;
    this.#representation = rule.representations?.choose(exchange, query);
    const timeout = readRestTimeout(exchange, maxTimeoutMs);
    this.timeoutMs = timeout.timeoutMs;
    let error: unknown = timeout.error;
    const hasBody = exchange.body !== undefined && body !== undefined;
    // A client that sends `Expect: 100-continue` must not get a 100 for a body that will be refused (RFC 9110 §10.1.1).
    if (hasBody && expect !== null) error ??= binding.bodyProblem(contentType, false);
    if (hasBody && contentEncoding !== null) {
      const isReadable = binding.hasRequestStream ? decodesPieces : () => true;
      this.#coding = readCoding(contentEncoding, acceptCompression.filter(isReadable));
      error ??= this.#coding.problem;
    }
    if (binding.hasRequestStream) error ??= binding.bodyProblem(contentType, !hasBody);
    try {
      this.select = binding.selectFields?.(query, exchange.get("x-goog-fieldmask"));
    } catch (invalid) {
      error ??= invalid;
    }
    this.problem = error;
  }

  #decode(body: Uint8Array): Message {
    const { captures, query } = this.#matched;
    const { binding, representations } = this.rule;
    const { contentType } = this.exchange.common;
    return binding.decode({ captures, query, contentType, body }, representations?.decodeProtobuf);
  }

  read(body: Uint8Array): Message | Promise<Message> {
    const compression = this.#coding?.compression;
    if (compression === undefined) return this.#decode(body);
    const decompressed = decompressQueued(compression, body, this.rule.rpc.options.readMaxBytes, this.exchange);
    return decompressed.then((bytes) => this.#decode(bytes));
  }

  readParts(): undefined {}

  readAll(): RequestMessages {
    return readRestMessages(this.exchange, this.#matched, this.#coding?.compression);
  }

  write(message: Message, header: Headers, trailer: Headers): void | Promise<void> {
    const { binding } = this.rule;
    const response =
      this.#representation?.write(message, this.select) ??
      binding.preparedResponse ??
      binding.encode(message, this.select);
    const { httpStatus: standardStatus, contentType, body } = response;
    const typeFields: HeaderFields =
      contentType === undefined ? noFields : ["content-type", contentType, ...this.varyFields()];
    const untouched = areUnchanged(header, trailer);
    const metadata = untouched ? noFields : this.metadataOf(header, trailer);
    const httpStatus = (untouched ? undefined : statusOfHandler(header, false)) ?? standardStatus;
    if (statusesWithoutBody.has(httpStatus))
      return this.exchange.respond(httpStatus, this.bodilessFields(httpStatus, metadata));
    const end = untouched || !binding.options.grpcMetadata ? undefined : restTrailerOf(this.exchange, trailer);
    const fields = untouched ? typeFields : [...typeFields, ...metadata, ...(end?.announcement ?? noFields)];
    // The bytes of a google.api.HttpBody are sent unchanged.
    if (binding.toRaw !== undefined)
      return this.exchange.respond(httpStatus, withSecurityFields(fields), body, end?.fields);
    return this.respondEncoded(httpStatus, fields, body, true, end?.fields);
  }

  /** Returns `Vary` fields for caches. The request's header may select the format and the response fields. */
  protected varyFields(): HeaderFields {
    const { binding, representations } = this.rule;
    const formatFields = representations === undefined ? noFields : ["vary", "accept"];
    return binding.selectFields === undefined ? formatFields : [...formatFields, "vary", "x-goog-fieldmask"];
  }

  /** Returns the fields of a response without a body. A 304 has the 200's `Vary` and known ETag (RFC 9110 §15.4.5). */
  protected bodilessFields(httpStatus: number, metadata: HeaderFields): HeaderFields {
    if (httpStatus !== 304 || this.rule.binding.toRaw !== undefined) return metadata;
    const etag = metadata.find((_, at) => metadata[at - 1] === "etag");
    const wasCoded = this.exchange.get("if-none-match")?.includes(`W/${etag}`) === true;
    return varyByCoding([...this.varyFields(), ...metadata], wasCoded ? this.chooseCoding() : undefined);
  }

  protected chooseCoding(): Compression | undefined {
    return negotiateCoding(this.exchange.get("accept-encoding"), this.rule.rpc.options.acceptCompression);
  }

  protected metadataOf(header: Headers, trailer?: Headers): HeaderFields {
    const fields = toRestHeader(header, trailer);
    return this.rule.binding.options.grpcMetadata ? withResponseMetadata(fields) : fields;
  }

  writeError(error: ConnectError, mayCompress: boolean): void | Promise<void> {
    const { httpStatus, fields, body } = this.errorResponse(error);
    const end = this.rule.binding.options.grpcMetadata ? restTrailerOf(this.exchange, this.responseTrailer) : undefined;
    if (end === undefined) return this.respondEncoded(httpStatus, fields, body, mayCompress);
    return this.respondEncoded(httpStatus, [...fields, ...end.announcement], body, mayCompress, end.fields);
  }

  release(): void {}

  protected errorResponse(error: ConnectError): RestErrorResponse {
    const { responseHeader: header, responseTrailer: trailer } = this;
    const { rpc, binding, writeErrorRecord, representations } = this.rule;
    const untouched = areUnchanged(header, trailer);
    const handlerStatus = untouched ? undefined : statusOfHandler(header, true);
    const failure = { httpStatus: handlerStatus ?? httpStatusOf(error), procedure: rpc.name };
    const metadata = untouched ? noFields : this.metadataOf(header, trailer);
    const formatFields = representations === undefined ? noFields : ["vary", "accept"];
    const otherFields = [...formatFields, ...(this.#coding?.acceptEncodingFields ?? noFields), ...metadata];
    const write = this.#representation?.writeError ?? writeErrorRecord;
    return toErrorResponse(write, error, failure, otherFields, binding.options.grpcMetadata);
  }

  /** Sends a complete response, compressed if the client accepts a coding and the body is large enough. */
  protected respondEncoded(
    httpStatus: number,
    fields: HeaderFields,
    body: Uint8Array | undefined,
    mayCompress: boolean,
    trailer?: HeaderFields,
  ): void | Promise<void> {
    if (body === undefined || body.byteLength < this.rule.rpc.options.compressMinBytes)
      return this.exchange.respond(httpStatus, fields, body, trailer);
    const coding = mayCompress ? this.chooseCoding() : undefined;
    const varying = varyByCoding(fields, coding);
    if (coding === undefined) return this.exchange.respond(httpStatus, varying, body, trailer);
    const encoded = [...varying, "content-encoding", coding.name];
    return coding.compress(body).then((compressed) => this.exchange.respond(httpStatus, encoded, compressed, trailer));
  }
}

interface BodyCoding {
  /** The compression, or `undefined` for identity and for an unsupported coding. */
  readonly compression: Compression | undefined;
  readonly problem: ConnectError | undefined;
  readonly acceptEncodingFields: HeaderFields;
}

function readCoding(encoding: string, readable: readonly Compression[]): BodyCoding {
  const names = readable.map(({ name }) => name);
  const coding = readContentCoding(encoding, names);
  const compression = readable.find(({ name }) => name === coding);
  if (coding !== undefined) return { compression, problem: undefined, acceptEncodingFields: noFields };
  const supported = names.length === 0 ? "identity" : names.join(", ");
  const unsupported = problem("ERR_ENCODING_UNSUPPORTED", `Content-Encoding must be one of ${supported}`, {
    option: "acceptCompression",
  });
  // A response 415 to an unsupported content coding lists the acceptable codings (RFC 9110 §15.5.16).
  return { compression, problem: unsupported, acceptEncodingFields: ["accept-encoding", supported] };
}

const noFields: HeaderFields = [];

/** The wire for a client-streaming call through a `google.api.http` rule. The response has one message. */
export class RestClientStreamWire extends RestUnaryWire implements StreamWire {
  readonly traits: StreamTraits = { heartbeat: undefined, reportsErrorAtEnd: false, sendsHeaderEarly: false };
  readonly earlyEnd = undefined;
  #header: Headers = this.responseHeader;
  #response: Message | undefined;

  /** Keeps the message, which becomes the response when the handler returns. */
  encode(message: Message): Uint8Array {
    this.#response = message;
    return noBytes;
  }

  headerToSend(header: Headers): HeaderFields {
    this.#header = header;
    return noFields;
  }

  readonly begin: () => never = refuseStreaming;
  readonly send: () => never = refuseStreaming;
  readonly end: () => never = refuseStreaming;

  respond(
    _header: HeaderFields,
    _bytes: Uint8Array,
    trailer: Headers,
    error: ConnectError | undefined,
    mayCompress: boolean,
  ): void | Promise<void> {
    if (error !== undefined) return this.writeError(error, mayCompress);
    if (this.#response === undefined)
      return this.writeError(problem("ERR_RESPONSE_FAILED", "internal error"), mayCompress);
    return this.write(this.#response, this.#header, trailer);
  }
}

function refuseStreaming(): never {
  throw new TypeError("client-streaming calls get a single response");
}

/**
 * Reads the messages that a client streams in a REST request's body. By default, each line is a message. A service may
 * accept consecutive JSON values. If the body is a google.api.HttpBody, the bytes become messages as they arrive.
 *
 * @param coding - the body's content coding, or `undefined` for none. A content coding must support decoding in pieces
 * @throws ConnectError while the body is read: `InvalidArgument` for an invalid message, or `ResourceExhausted` for a
 * message above the limit. Both errors name the line or the message's number
 */
function readRestMessages(
  exchange: Exchange,
  { rule: { rpc, binding }, captures, query }: MatchedRule,
  coding: Compression | undefined,
): RequestMessages {
  const { contentType } = exchange.common;
  const { readMaxBytes } = rpc.options;
  const stream = binding.openStream({ captures, query, contentType });
  const reader = createReader(binding.bodyFormat, contentType, readMaxBytes, stream);
  if (coding === undefined || !decodesPieces(coding)) return readMessages(readPieces(exchange), reader);
  const controller = new AbortController();
  const messages = readMessages(decodeBodyPieces(exchange, coding, readMaxBytes, controller.signal), reader);
  return Object.assign(messages, { close: () => controller.abort(clientGoneError()) });
}

function createReader(
  { kind, jsonValues }: RestRule["binding"]["bodyFormat"],
  contentType: string | null,
  readMaxBytes: number,
  stream: RequestStream,
): MessageSplitter<Message> {
  if (kind === "bytes") return new ByteReader(readMaxBytes, stream);
  if (jsonValues === undefined || contentType === null || !jsonType.test(contentType)) {
    return new LineReader(readMaxBytes, stream);
  }
  return new JsonValueReader(readMaxBytes, stream, jsonValues === "or-array");
}

const jsonType = /^application\/json[\t ]*(?:;|$)/i;

/** Starts reading the body when the handler starts reading messages. */
async function* readPieces(exchange: Exchange): AsyncGenerator<Uint8Array> {
  if (exchange.body !== undefined) yield* exchange.body.pieces();
}

async function* decodeBodyPieces(
  exchange: Exchange,
  coding: PieceDecompression,
  freeBytes: number,
  signal: AbortSignal,
): AsyncGenerator<Uint8Array> {
  if (exchange.body !== undefined) yield* coding.decodePieces(exchange.body.pieces(), freeBytes, signal);
}

/** Converts each piece of a body to a message, or to several messages if the piece exceeds the message limit. */
class ByteReader implements MessageSplitter<Message> {
  readonly #readMaxBytes: number;
  readonly #stream: RequestStream;
  #piece = noBytes;

  constructor(readMaxBytes: number, stream: RequestStream) {
    this.#readMaxBytes = readMaxBytes;
    this.#stream = stream;
  }

  add(piece: Uint8Array): void {
    this.#piece = piece;
  }

  take(): Message | undefined {
    const piece = this.#piece;
    if (piece.byteLength === 0) return undefined;
    this.#piece = piece.subarray(this.#readMaxBytes);
    return this.#stream.read(piece.subarray(0, this.#readMaxBytes));
  }

  end(): Message | undefined {
    return this.#stream.end();
  }
}
