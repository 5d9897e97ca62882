import type { ConnectError } from "@connectrpc/connect";
import type { Exchange, HeaderFields } from "../../http/index.ts";
import { type Content, Envelope, envelopePrefix } from "../envelope/envelope.ts";
import { LazyHeaders } from "../lazy-headers.ts";
import { createTarget, type Protocol } from "../protocol.ts";
import type { Rpc } from "../rpc.ts";
import { type CallFormat, callFormatsOf, refusalContentType } from "../shared/content-type.ts";
import { EnvelopedWire, planEnvelope } from "../shared/enveloped-wire.ts";
import { endTrailer, okTrailer, readGrpcHeader, statusOk, writeTrailersOnly } from "./status.ts";

const baseType = "application/grpc";

/** gRPC over HTTP/2 (https://github.com/grpc/grpc/blob/master/doc/PROTOCOL-HTTP2.md). */
export const grpc: Protocol = {
  name: "grpc",
  hasHttpStatus: false,
  targetsOf(rpc) {
    const { grpc: isServed = true } = rpc.options;
    if (!isServed) return [];
    const formats = callFormatsOf(baseType, rpc.codecs, (codec) => planEnvelope(codec, rpc));
    return formats.map(([contentType, format]) => {
      return [contentType, createTarget(grpc, rpc, (exchange) => new GrpcWire(exchange, rpc, format))];
    });
  },
  handlesUnmatched({ common: { contentType } }) {
    return contentType?.toLowerCase().startsWith(baseType) === true;
  },
  openError(exchange) {
    const contentType = refusalContentType(exchange.common.contentType, [baseType]);
    return {
      writeError: (error) => writeTrailersOnly(exchange, ["content-type", contentType], new LazyHeaders([]), error),
    };
  },
};

/** A gRPC call over HTTP/2, and over HTTP/1.1 for clients that read trailers. */
class GrpcWire extends EnvelopedWire {
  readonly responseTrailer: LazyHeaders = new LazyHeaders(statusOk);

  constructor(exchange: Exchange, rpc: Rpc, format: CallFormat) {
    // In gRPC, no body bytes follow a truncated message, so the client detects the truncation. In other protocols, the
    // client would read the end of the response as message bytes.
    super(exchange, rpc, format, readGrpcHeader(exchange, rpc), "parts");
  }

  // Writes messages as the base class does, but does not copy a large uncompressed message into an envelope.
  override write(message: Content, header: Headers, trailer: Headers): void | Promise<void> {
    if (message instanceof Envelope) return super.write(message, header, trailer);
    const bytes = this.codec.encode(message);
    const isLarge = this.encodings.response === undefined && bytes.byteLength >= minUncopiedBytes;
    // A trailer that the handler has set may be too large. No error could follow a response that has begun.
    if (isLarge && this.responseTrailer.isPristine) return this.#respondUncopied(header, bytes, trailer);
    return this.respondWith(this.envelop(bytes), header, trailer);
  }

  #respondUncopied(header: Headers, message: Uint8Array, trailer: Headers): void {
    const { exchange } = this;
    const trailerFields = okTrailer(trailer);
    exchange.begin(200, this.headerToSend(header));
    // The two calls are the response's last writes, so backpressure can be ignored.
    for (const piece of [envelopePrefix(message.byteLength), message]) void exchange.write(piece);
    exchange.end(trailerFields);
  }

  end(trailer: Headers, error: ConnectError | undefined): void {
    this.exchange.end(endTrailer(trailer, error));
  }

  respond(header: HeaderFields, bytes: Uint8Array, trailer: Headers, error: ConnectError | undefined): void {
    const isEmpty = error !== undefined && bytes.byteLength === 0;
    // A single header section suffices unless the handler has set header fields.
    if (isEmpty && this.responseHeader.isPristine) return writeTrailersOnly(this.exchange, header, trailer, error);
    this.exchange.respond(200, header, isEmpty ? undefined : bytes, endTrailer(trailer, error));
  }
}

/** Minimum bytes in a message that is not copied into an envelope. A separate write costs as much as a small copy. */
const minUncopiedBytes = 64 * 1024;
