import type { ConnectError } from "@connectrpc/connect";
import { readGrpcHeader } from "../call-header.ts";
import { type Exchange, type HeaderFields, prepareHeaderFields } from "../../carriers/index.ts";
import { refusalContentType } from "../content-type.ts";
import { envelop, envelopePrefix } from "../envelope.ts";
import { EnvelopedCall } from "../enveloped-call.ts";
import { headerFieldsToSend, LazyHeaders } from "../lazy-headers.ts";
import type { Procedure } from "../procedure.ts";
import type { ResponseParts, UnaryProtocol } from "../call-protocol.ts";
import { setStatus, statusOk } from "../trailer-status.ts";

/** A unary call of gRPC over HTTP/2, and over HTTP/1.1 for clients that read its trailers. */
export class GrpcUnary extends EnvelopedCall implements UnaryProtocol {
  readonly protocol = "grpc";
  readonly responseTrailer: LazyHeaders = new LazyHeaders(statusOk);

  constructor(exchange: Exchange, procedure: Procedure, format: "binary" | "json") {
    const contentType = format === "binary" ? protoHeader : jsonHeader;
    super(exchange, procedure, format, readGrpcHeader(exchange, procedure, contentType));
  }

  writeMessage(response: ResponseParts): void | Promise<void> {
    const compression = this.encodings.response;
    const bytes = this.codec.encode(response.message);
    if (compression === undefined && bytes.byteLength >= uncopiedBytesMin) return this.#answerUncopied(response, bytes);
    const body = envelop(bytes, compression, this.procedure.options);
    if (body instanceof Promise) return body.then((enveloped) => this.#answer(response, enveloped));
    this.#answer(response, body);
  }

  #answer({ header, trailer }: ResponseParts, body: Uint8Array): void {
    const fields = headerFieldsToSend(header, this.headerFields);
    this.exchange.answer(200, fields, body, headerFieldsToSend(trailer, statusOk));
  }

  #answerUncopied({ header, trailer }: ResponseParts, message: Uint8Array): void {
    const { exchange } = this;
    const trailerFields = headerFieldsToSend(trailer, statusOk);
    exchange.begin(200, headerFieldsToSend(header, this.headerFields));
    // The body ends right after these, whether or not the client reads them.
    for (const piece of [envelopePrefix(message.byteLength), message]) void exchange.write(piece);
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

/** Answers a gRPC request that never became a call, in the form that gRPC over HTTP/2 calls `Trailers-Only`. */
export function refuseGrpc(exchange: Exchange, error: ConnectError): void {
  const trailer = new LazyHeaders(["content-type", refusalContentType(exchange.common.contentType)]);
  setStatus(trailer, error);
  exchange.answer(200, trailer.fields);
}

/** Bytes from which a message is sent as it is, after its prefix, instead of being copied into an envelope. */
// 64 KiB: below, a piece and its frame cost as much as the copy.
const uncopiedBytesMin = 64 * 1024;

const protoHeader: HeaderFields = prepareHeaderFields("content-type", "application/grpc+proto");
const jsonHeader: HeaderFields = prepareHeaderFields("content-type", "application/grpc+json");
