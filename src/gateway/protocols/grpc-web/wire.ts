import type { Message } from "@bufbuild/protobuf";
import type { ConnectError } from "@connectrpc/connect";
import { concatBytes, type Exchange, type HeaderFields } from "../../carriers/index.ts";
import type { CallFormat } from "../content-type.ts";
import { EnvelopedWire } from "../enveloped-wire.ts";
import { readGrpcHeader } from "../grpc/header.ts";
import { setStatus, statusOk } from "../grpc/status.ts";
import { LazyHeaders } from "../lazy-headers.ts";
import type { Rpc } from "../rpc.ts";
import { decodeGrpcWebText, decodeTextPieces, encodeGrpcWebText, grpcWebTextBytes } from "./text.ts";
import { trailerEnvelope } from "./trailer.ts";

/** A call of gRPC-Web, binary or base64 text: gRPC with its trailer section at the end of the body. */
export class GrpcWebWire extends EnvelopedWire {
  readonly responseTrailer: LazyHeaders = new LazyHeaders(statusOk);
  readonly #text: boolean;

  constructor(exchange: Exchange, rpc: Rpc, format: CallFormat, text: boolean) {
    super(exchange, rpc, format, readGrpcHeader(exchange, rpc));
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
