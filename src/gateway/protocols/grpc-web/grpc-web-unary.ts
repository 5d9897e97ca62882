import type { Message } from "@bufbuild/protobuf";
import type { ConnectError, UnaryResponse } from "@connectrpc/connect";
import { parseTimeout } from "@connectrpc/connect/protocol-grpc";
import { trailerSerialize } from "@connectrpc/connect/protocol-grpc-web";
import type { Codec } from "../codec.ts";
import { type Encodings, grpcEncodingFields, negotiateGrpcEncodings } from "../compression.ts";
import { concatBytes, type Exchange, type HeaderFields, prepareFields, toUtf8 } from "../../carriers/index.ts";
import { decodeGrpcWebText, encodeGrpcWebText, grpcWebTextBytes } from "./grpc-web-text.ts";
import {
  envelopeBytes,
  envelopePrefixBytes,
  readEnvelopedMessage,
  trailerFlag,
  writeEnvelope,
  writeEnvelopedMessage,
} from "../envelope.ts";
import { fieldsToSend, LazyHeaders } from "../lazy-headers.ts";
import type { Procedure } from "../procedure.ts";
import type { UnaryProtocol } from "../call-protocol.ts";
import { setStatus } from "../trailer-status.ts";

/** A unary call of gRPC-Web, binary or base64 text: gRPC with its trailer section at the end of the body. */
export class GrpcWebUnary implements UnaryProtocol {
  readonly protocol = "grpc-web";
  readonly timeoutMs: number | undefined;
  readonly problem: ConnectError | undefined;
  readonly bodyLimitBytes: number;
  readonly requestHeader: LazyHeaders;
  readonly responseHeader: LazyHeaders;
  readonly responseTrailer: LazyHeaders = new LazyHeaders(statusOk);
  protected readonly headerFields: HeaderFields;
  protected readonly exchange: Exchange;
  protected readonly procedure: Procedure;
  protected readonly codec: Codec;
  protected readonly encodings: Encodings;
  protected readonly text: boolean;

  constructor(exchange: Exchange, procedure: Procedure, format: "binary" | "json", text: boolean) {
    const { options } = procedure;
    const timeout = parseTimeout(exchange.common.grpcTimeout, options.maxTimeoutMs);
    this.requestHeader = new LazyHeaders(exchange.fields);
    this.exchange = exchange;
    this.procedure = procedure;
    this.codec = procedure.codecs[format];
    this.encodings = negotiateGrpcEncodings(options.acceptCompression, exchange.common);
    this.text = text;
    this.timeoutMs = timeout.timeoutMs;
    this.problem = this.encodings.problem ?? timeout.error;
    const limitBytes = envelopePrefixBytes + options.readMaxBytes;
    this.bodyLimitBytes = text ? grpcWebTextBytes(limitBytes) : limitBytes;
    const contentType = ["content-type", grpcWebContentType(format, text)];
    const encodingFields = grpcEncodingFields(this.encodings);
    this.headerFields = encodingFields.length === 0 ? contentType : [...contentType, ...encodingFields];
    this.responseHeader = new LazyHeaders(this.headerFields);
  }

  announcedBytes(firstPiece: Uint8Array): number {
    return this.text ? 0 : envelopeBytes(firstPiece);
  }

  readMessage(body: Uint8Array): Message | Promise<Message> {
    const bytes = this.text ? decodeGrpcWebText(body) : body;
    return readEnvelopedMessage(bytes, this.codec, this.encodings.request, this.procedure.options.readMaxBytes);
  }

  writeMessage(response: UnaryResponse): void | Promise<void> {
    const { options } = this.procedure;
    const message = writeEnvelopedMessage(response.message, this.codec, this.encodings.response, options);
    const trailer = trailerEnvelope(response.trailer);
    const answer = (bytes: Uint8Array): void => this.#answer(response.header, concatBytes([bytes, trailer]));
    return message instanceof Promise ? message.then(answer) : answer(message);
  }

  writeError(error: ConnectError): void {
    setStatus(this.responseTrailer, error);
    this.#answer(this.responseHeader, trailerEnvelope(this.responseTrailer));
  }

  #answer(header: Headers, body: Uint8Array): void {
    const bytes = this.text ? encodeGrpcWebText(body) : body;
    this.exchange.answer(200, fieldsToSend(header, this.headerFields), bytes);
  }
}

/** Answers a gRPC-Web request that never became a call. */
export function refuseGrpcWeb(exchange: Exchange, contentType: string, error: ConnectError): void {
  const trailer = new LazyHeaders([]);
  setStatus(trailer, error);
  const body = trailerEnvelope(trailer);
  const text = contentType.startsWith(textContentType);
  exchange.answer(200, ["content-type", contentType], text ? encodeGrpcWebText(body) : body);
}

/** Returns the content type of a gRPC-Web answer. */
function grpcWebContentType(format: "binary" | "json", text: boolean): string {
  return `${text ? textContentType : "application/grpc-web"}+${format === "binary" ? "proto" : "json"}`;
}

const textContentType = "application/grpc-web-text";
const statusOk: HeaderFields = prepareFields("grpc-status", "0");
// The end of nearly every answer: an envelope with "grpc-status: 0".
const statusOkEnvelope = writeEnvelope(trailerFlag, toUtf8("grpc-status: 0\r\n"));

export function trailerEnvelope(trailer: Headers): Uint8Array {
  if (trailer instanceof LazyHeaders && trailer.pristine && trailer.fields === statusOk) return statusOkEnvelope;
  // A trailer that an interceptor put in its place lacks the status.
  const section = trailer instanceof LazyHeaders ? trailer : new LazyHeaders(fieldsToSend(trailer, statusOk));
  return writeEnvelope(trailerFlag, trailerSerialize(section));
}
