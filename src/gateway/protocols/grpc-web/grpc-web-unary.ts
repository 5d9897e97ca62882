import type { Message } from "@bufbuild/protobuf";
import type { ConnectError } from "@connectrpc/connect";
import { trailerSerialize } from "@connectrpc/connect/protocol-grpc-web";
import { readGrpcHeader } from "../call-header.ts";
import { concatBytes, type Exchange, toUtf8 } from "../../carriers/index.ts";
import { refusalContentType } from "../content-type.ts";
import { decodeGrpcWebText, encodeGrpcWebText, grpcWebTextBytes } from "./grpc-web-text.ts";
import { trailerFlag, writeEnvelope } from "../envelope.ts";
import { EnvelopedCall } from "../enveloped-call.ts";
import { headerFieldsToSend, LazyHeaders } from "../lazy-headers.ts";
import type { Procedure } from "../procedure.ts";
import type { ResponseParts, UnaryProtocol } from "../call-protocol.ts";
import { setStatus, statusOk } from "../trailer-status.ts";

/** A unary call of gRPC-Web, binary or base64 text: gRPC with its trailer section at the end of the body. */
export class GrpcWebUnary extends EnvelopedCall implements UnaryProtocol {
  readonly protocol = "grpc-web";
  readonly responseTrailer: LazyHeaders = new LazyHeaders(statusOk);
  protected readonly text: boolean;

  constructor(exchange: Exchange, procedure: Procedure, format: "binary" | "json", text: boolean) {
    const contentType = ["content-type", grpcWebContentType(format, text)];
    super(exchange, procedure, format, readGrpcHeader(exchange, procedure, contentType));
    this.text = text;
    if (text) this.bodyLimitBytes = grpcWebTextBytes(this.bodyLimitBytes);
  }

  override announcedBytes(firstPiece: Uint8Array): number {
    return this.text ? 0 : super.announcedBytes(firstPiece);
  }

  override readMessage(body: Uint8Array): Message | Promise<Message> {
    return super.readMessage(this.text ? decodeGrpcWebText(body) : body);
  }

  writeMessage(response: ResponseParts): void | Promise<void> {
    const message = this.encode(response.message);
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
    this.exchange.answer(200, headerFieldsToSend(header, this.headerFields), bytes);
  }
}

/** Answers a gRPC-Web request that never became a call. */
export function refuseGrpcWeb(exchange: Exchange, error: ConnectError): void {
  const contentType = refusalContentType(exchange.common.contentType);
  const trailer = new LazyHeaders([]);
  setStatus(trailer, error);
  const body = trailerEnvelope(trailer);
  const text = contentType.startsWith(textContentType);
  exchange.answer(200, ["content-type", contentType], text ? encodeGrpcWebText(body) : body);
}

function grpcWebContentType(format: "binary" | "json", text: boolean): string {
  return `${text ? textContentType : "application/grpc-web"}+${format === "binary" ? "proto" : "json"}`;
}

const textContentType = "application/grpc-web-text";
// The end of nearly every answer: an envelope with "grpc-status: 0".
const statusOkEnvelope = writeEnvelope(trailerFlag, toUtf8("grpc-status: 0\r\n"));

/** Returns the last envelope of a gRPC-Web answer, which holds its trailer section. */
export function trailerEnvelope(trailer: Headers): Uint8Array {
  if (trailer instanceof LazyHeaders && trailer.pristine && trailer.fields === statusOk) return statusOkEnvelope;
  // A trailer that an interceptor put in its place lacks the status.
  const section = trailer instanceof LazyHeaders ? trailer : new LazyHeaders(headerFieldsToSend(trailer, statusOk));
  return writeEnvelope(trailerFlag, trailerSerialize(section));
}
