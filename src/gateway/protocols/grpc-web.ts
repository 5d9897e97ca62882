import type { Message } from "@bufbuild/protobuf";
import type { ConnectError } from "@connectrpc/connect";
import { trailerSerialize } from "@connectrpc/connect/protocol-grpc-web";
import { concatBytes, type Exchange, type HeaderFields, toUtf8 } from "../carriers/index.ts";
import { refusalContentType, type Spelling, spellingsOf } from "./content-type.ts";
import { trailerFlag, writeEnvelope } from "./envelope.ts";
import { EnvelopedCall, readGrpcHeader } from "./enveloped-call.ts";
import { setStatus, statusOk } from "./grpc.ts";
import { decodeGrpcWebText, decodeTextPieces, encodeGrpcWebText, grpcWebTextBytes } from "./grpc-web-text.ts";
import { headerFieldsToSend, LazyHeaders } from "./lazy-headers.ts";
import type { Procedure } from "./procedure.ts";
import type { Protocol } from "./protocol.ts";
import { createRpcTarget } from "./target.ts";

const baseType = "application/grpc-web";
const textType = "application/grpc-web-text";

/** gRPC-Web (https://github.com/grpc/grpc/blob/master/doc/PROTOCOL-WEB.md). */
export const grpcWeb: Protocol = {
  name: "grpc-web",
  hasHttpStatus: false,
  targetsOf(procedure) {
    if (procedure.options.grpcWeb === false) return [];
    return [baseType, textType].flatMap((base) =>
      spellingsOf(base, procedure.codecs).map(([contentType, spelling]) => {
        const open = (e: Exchange): GrpcWebCall => new GrpcWebCall(e, procedure, spelling, base === textType);
        return [contentType, createRpcTarget(grpcWeb, procedure, open)] as const;
      }),
    );
  },
  claims({ common: { contentType } }) {
    return contentType?.toLowerCase().startsWith(baseType) === true;
  },
  refuse(exchange, { error }) {
    const contentType = refusalContentType(exchange.common.contentType, [textType, baseType]);
    const trailer = new LazyHeaders([]);
    setStatus(trailer, error);
    const body = trailerEnvelope(trailer);
    exchange.answer(
      200,
      ["content-type", contentType],
      contentType.startsWith(textType) ? encodeGrpcWebText(body) : body,
    );
  },
};

/** A call of gRPC-Web, binary or base64 text: gRPC with its trailer section at the end of the body. */
class GrpcWebCall extends EnvelopedCall {
  readonly responseTrailer: LazyHeaders = new LazyHeaders(statusOk);
  readonly #text: boolean;

  constructor(exchange: Exchange, procedure: Procedure, spelling: Spelling, text: boolean) {
    super(exchange, procedure, spelling, readGrpcHeader(exchange, procedure));
    this.#text = text;
    if (text) this.bodyLimitBytes = grpcWebTextBytes(this.bodyLimitBytes);
  }

  override announcedBytes(firstPiece: Uint8Array): number {
    return this.#text ? 0 : super.announcedBytes(firstPiece);
  }

  override readMessage(body: Uint8Array): Message | Promise<Message> {
    return super.readMessage(this.#text ? decodeGrpcWebText(body) : body);
  }

  protected override pieces(): AsyncIterable<Uint8Array> {
    const body = super.pieces();
    return this.#text ? decodeTextPieces(body) : body;
  }

  override write(bytes: Uint8Array): void | Promise<void> {
    return super.write(this.#toBody(bytes));
  }

  end(trailer: Headers, error: ConnectError | undefined): void {
    if (error !== undefined) setStatus(trailer, error);
    // The body ends right after this, whether or not the client reads it.
    void this.write(trailerEnvelope(trailer));
    this.exchange.end();
  }

  answer(header: HeaderFields, bytes: Uint8Array, trailer: Headers, error: ConnectError | undefined): void {
    if (error !== undefined) setStatus(trailer, error);
    this.exchange.answer(200, header, this.#toBody(concatBytes([bytes, trailerEnvelope(trailer)])));
  }

  /** Encodes each piece separately, so that a client can decode what it has without waiting for the rest. */
  #toBody(bytes: Uint8Array): Uint8Array {
    return this.#text ? encodeGrpcWebText(bytes) : bytes;
  }
}

// The end of nearly every answer: an envelope with "grpc-status: 0".
const statusOkEnvelope = writeEnvelope(trailerFlag, toUtf8("grpc-status: 0\r\n"));

/** Returns the last envelope of a gRPC-Web answer, which holds its trailer section. */
function trailerEnvelope(trailer: Headers): Uint8Array {
  if (trailer instanceof LazyHeaders && trailer.pristine && trailer.fields === statusOk) return statusOkEnvelope;
  // A trailer that an interceptor put in its place lacks the status.
  const section = trailer instanceof LazyHeaders ? trailer : new LazyHeaders(headerFieldsToSend(trailer, statusOk));
  return writeEnvelope(trailerFlag, trailerSerialize(section));
}
