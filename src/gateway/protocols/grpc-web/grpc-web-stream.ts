import type { ConnectError } from "@connectrpc/connect";
import { concatBytes, type HeaderFields } from "../../carriers/index.ts";
import type { StreamProtocol } from "../call-protocol.ts";
import { decodeGrpcWebText, encodeGrpcWebText } from "./grpc-web-text.ts";
import { GrpcWebUnary, trailerEnvelope } from "./grpc-web-unary.ts";
import { setStatus } from "../trailer-status.ts";

/** A streaming call of gRPC-Web, binary or base64 text. */
export class GrpcWebStream extends GrpcWebUnary implements StreamProtocol {
  protected override pieces(): AsyncIterable<Uint8Array> {
    const body = super.pieces();
    return this.text ? decodeTextPieces(body) : body;
  }

  override write(bytes: Uint8Array): void | Promise<void> {
    return super.write(this.#toBody(bytes));
  }

  end(trailer: Headers, error: ConnectError | undefined): void {
    if (error !== undefined) setStatus(trailer, error);
    // The body ends right after this, whether or not the client reads it.
    void this.write(trailerEnvelope(trailer))?.catch(() => undefined);
    this.exchange.end();
  }

  answer(header: HeaderFields, bytes: Uint8Array, trailer: Headers, error: ConnectError | undefined): void {
    if (error !== undefined) setStatus(trailer, error);
    const body = this.#toBody(concatBytes([bytes, trailerEnvelope(trailer)]));
    this.exchange.answer(200, header, body);
  }

  /** Encodes each piece separately, so that a client can decode what it has without waiting for the rest. */
  #toBody(bytes: Uint8Array): Uint8Array {
    return this.text ? encodeGrpcWebText(bytes) : bytes;
  }
}

/** Decodes a body of `application/grpc-web-text` piece by piece; an incomplete quantum waits for the next piece. */
export async function* decodeTextPieces(pieces: AsyncIterable<Uint8Array>): AsyncGenerator<Uint8Array> {
  let rest: Uint8Array = new Uint8Array(0);
  for await (const piece of pieces) {
    const joined = rest.byteLength === 0 ? piece : concatBytes([rest, piece]);
    const whole = joined.byteLength - (joined.byteLength % 4);
    rest = joined.subarray(whole);
    if (whole > 0) yield decodeGrpcWebText(joined.subarray(0, whole));
  }
  // An incomplete quantum at the end is refused by the decoder.
  if (rest.byteLength > 0) yield decodeGrpcWebText(rest);
}
