import type { Message } from "@bufbuild/protobuf";
import type { ConnectError, UnaryResponse } from "@connectrpc/connect";
import { parseTimeout } from "@connectrpc/connect/protocol-grpc";
import type { Codec } from "../codec.ts";
import { type Encodings, grpcEncodingFields, negotiateGrpcEncodings } from "../compression.ts";
import { type Exchange, type HeaderFields, prepareFields } from "../../carriers/index.ts";
import { envelop, envelopeBytes, envelopePrefix, envelopePrefixBytes, readEnvelopedMessage } from "../envelope.ts";
import { fieldsToSend, LazyHeaders } from "../lazy-headers.ts";
import type { Procedure } from "../procedure.ts";
import type { UnaryProtocol } from "../call-protocol.ts";
import { setStatus } from "../trailer-status.ts";

/** A unary call of gRPC over HTTP/2, and over HTTP/1.1 for clients that read its trailers. */
export class GrpcUnary implements UnaryProtocol {
  readonly protocol = "grpc";
  readonly timeoutMs: number | undefined;
  readonly problem: ConnectError | undefined;
  readonly bodyLimitBytes: number;
  readonly requestHeader: LazyHeaders;
  readonly responseHeader: LazyHeaders;
  readonly responseTrailer: LazyHeaders;
  protected readonly headerFields: HeaderFields;
  protected readonly exchange: Exchange;
  protected readonly procedure: Procedure;
  protected readonly codec: Codec;
  protected readonly encodings: Encodings;

  constructor(exchange: Exchange, procedure: Procedure, format: "binary" | "json") {
    const { options } = procedure;
    const timeout = parseTimeout(exchange.common.grpcTimeout, options.maxTimeoutMs);
    this.exchange = exchange;
    this.procedure = procedure;
    this.codec = procedure.codecs[format];
    this.encodings = negotiateGrpcEncodings(options.acceptCompression, exchange.common);
    this.timeoutMs = timeout.timeoutMs;
    this.problem = this.encodings.problem ?? timeout.error;
    this.bodyLimitBytes = envelopePrefixBytes + options.readMaxBytes;
    const contentType = format === "binary" ? protoHeader : jsonHeader;
    const encodingFields = grpcEncodingFields(this.encodings);
    this.headerFields = encodingFields.length === 0 ? contentType : [...contentType, ...encodingFields];
    this.requestHeader = new LazyHeaders(exchange.fields);
    this.responseHeader = new LazyHeaders(this.headerFields);
    this.responseTrailer = new LazyHeaders(statusOk);
  }

  announcedBytes(firstPiece: Uint8Array): number {
    return envelopeBytes(firstPiece);
  }

  readMessage(body: Uint8Array): Message | Promise<Message> {
    return readEnvelopedMessage(body, this.codec, this.encodings.request, this.procedure.options.readMaxBytes);
  }

  writeMessage(response: UnaryResponse): void | Promise<void> {
    const compression = this.encodings.response;
    const bytes = this.codec.encode(response.message);
    if (compression === undefined && bytes.byteLength >= uncopiedBytesMin) return this.#answerUncopied(response, bytes);
    const body = envelop(bytes, compression, this.procedure.options);
    if (body instanceof Promise) return body.then((enveloped) => this.#answer(response, enveloped));
    this.#answer(response, body);
  }

  #answer({ header, trailer }: UnaryResponse, body: Uint8Array): void {
    const fields = fieldsToSend(header, this.headerFields);
    this.exchange.answer(200, fields, body, fieldsToSend(trailer, statusOk));
  }

  #answerUncopied({ header, trailer }: UnaryResponse, message: Uint8Array): void {
    const { exchange } = this;
    const trailerFields = fieldsToSend(trailer, statusOk);
    exchange.begin(200, fieldsToSend(header, this.headerFields));
    // The call is told by its abort receiver when the client goes away meanwhile.
    for (const piece of [envelopePrefix(message.byteLength), message]) exchange.write(piece)?.catch(() => undefined);
    exchange.end(trailerFields);
  }

  writeError(error: ConnectError): void {
    const { responseHeader: header, responseTrailer: trailer } = this;
    setStatus(trailer, error);
    // "Trailers-Only": one header section is enough unless the handler has set header fields.
    if (header.pristine) this.exchange.answer(200, [...header.fields, ...trailer.fields]);
    else this.exchange.answer(200, header.fields, undefined, trailer.fields);
  }
}

/** Answers a gRPC request that never became a call, as gRPC over HTTP/2 calls `Trailers-Only`. */
export function refuseGrpc(exchange: Exchange, contentType: string, error: ConnectError): void {
  const trailer = new LazyHeaders(["content-type", contentType]);
  setStatus(trailer, error);
  exchange.answer(200, trailer.fields);
}

/** Bytes of a message above which its envelope is written as two pieces instead of one copy. */
// 64 KiB: below, a piece and its frame cost as much as the copy.
const uncopiedBytesMin = 64 * 1024;

export const statusOk: HeaderFields = prepareFields("grpc-status", "0");
const protoHeader: HeaderFields = prepareFields("content-type", "application/grpc+proto");
const jsonHeader: HeaderFields = prepareFields("content-type", "application/grpc+json");
