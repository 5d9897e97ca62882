import { decodeGrpcWebText, encodeGrpcWebText } from "./grpc-web-text.ts";

/** Decodes a body of `application/grpc-web-text` piece by piece; what is not a whole quantum waits for the next. */
export async function* decodeTextPieces(pieces: AsyncIterable<Uint8Array>): AsyncGenerator<Uint8Array> {
  let rest: Uint8Array = new Uint8Array(0);
  for await (const piece of pieces) {
    const joined = rest.byteLength === 0 ? piece : Buffer.concat([rest, piece]);
    const whole = joined.byteLength - (joined.byteLength % 4);
    rest = joined.subarray(whole);
    if (whole > 0) yield decodeGrpcWebText(joined.subarray(0, whole));
  }
  // Not a whole quantum at the end: refused as what it is.
  if (rest.byteLength > 0) yield decodeGrpcWebText(rest);
}

/** Encodes each piece by itself, so that a client can decode what it has without waiting for the rest. */
export async function* encodeTextPieces(pieces: AsyncIterable<Uint8Array>): AsyncGenerator<Uint8Array> {
  for await (const piece of pieces) yield encodeGrpcWebText(piece);
}
