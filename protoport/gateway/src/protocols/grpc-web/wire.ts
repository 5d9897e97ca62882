import type { Message } from "@bufbuild/protobuf";
import type { ConnectError } from "@connectrpc/connect";
import type { Exchange, HeaderFields } from "../../http/index.ts";
import type { CallFormat } from "../shared/content-type.ts";
import type { Take } from "../envelope/envelope.ts";
import { EnvelopedWire } from "../shared/enveloped-wire.ts";
import { readGrpcHeader } from "../grpc/header.ts";
import { statusOk } from "../grpc/status.ts";
import { LazyHeaders } from "../lazy-headers.ts";
import type { Rpc } from "../rpc.ts";
import { trailerEnvelope, writeResponse } from "./response.ts";
import { decodeGrpcWebText, decodeTextPieces, encodeGrpcWebText } from "./text.ts";

/** A gRPC-Web call, in binary or base64 text. Unlike in gRPC, the trailer section is at the end of the body. */
export class GrpcWebWire extends EnvelopedWire {
  readonly responseTrailer: LazyHeaders = new LazyHeaders(statusOk);
  readonly #isText: boolean;

  constructor(exchange: Exchange, rpc: Rpc, format: CallFormat, isText: boolean) {
    super(exchange, rpc, format, readGrpcHeader(exchange, rpc));
    this.#isText = isText;
  }

  override read<T>(body: Uint8Array, take: Take<T>): Message | T | Promise<Message | T> {
    return super.read(this.#isText ? decodeGrpcWebText(body) : body, take);
  }

  override readParts(start: Uint8Array, rest: AsyncIterable<Uint8Array>): AsyncIterable<Uint8Array> | undefined {
    return this.#isText ? undefined : super.readParts(start, rest);
  }

  protected override pieces(): AsyncIterable<Uint8Array> {
    const body = super.pieces();
    return this.#isText ? decodeTextPieces(body) : body;
  }

  override send(bytes: Uint8Array): void | Promise<void> {
    // Each piece is encoded separately, so that a client can decode the piece without waiting for the rest.
    return super.send(this.#isText ? encodeGrpcWebText(bytes) : bytes);
  }

  end(trailer: Headers, error: ConnectError | undefined): void {
    // The trailer is the response's last write, so backpressure can be ignored.
    void this.send(trailerEnvelope(trailer, error));
    this.exchange.end();
  }

  respond(header: HeaderFields, bytes: Uint8Array, trailer: Headers, error: ConnectError | undefined): void {
    writeResponse(this.exchange, header, bytes, trailer, error, this.#isText);
  }
}
