import { base64Encode } from "@bufbuild/protobuf/wire";
import { Code, ConnectError } from "@connectrpc/connect";
import { concatBytes, noBytes, toUtf8 } from "../carriers/index.ts";
import { parseBase64 } from "../json/index.ts";

const latin1 = new TextDecoder("latin1");

/**
 * Decodes a body of `application/grpc-web-text`: base64 in one or more padded runs, because a sender may encode each of
 * its chunks separately (gRPC-Web protocol, "Message Encoding").
 *
 * @throws ConnectError `InvalidArgument` for anything else
 */
export function decodeGrpcWebText(body: Uint8Array): Uint8Array {
  const text = latin1.decode(body);
  const runs = /^[A-Za-z0-9+/=]*$/.test(text) ? text.match(/[^=]*=*/g) : undefined;
  const parts = runs?.map((run) => (run.length % 4 === 0 ? parseBase64(run) : undefined)) ?? [undefined];
  const decoded = parts.filter((part) => part !== undefined);
  if (decoded.length < parts.length) throw new ConnectError("the body is not valid base64", Code.InvalidArgument);
  return concatBytes(decoded);
}

/** Decodes such a body piece by piece; an incomplete quantum waits for the next piece. */
export async function* decodeTextPieces(pieces: AsyncIterable<Uint8Array>): AsyncGenerator<Uint8Array> {
  let rest = noBytes;
  for await (const piece of pieces) {
    const joined = rest.byteLength === 0 ? piece : concatBytes([rest, piece]);
    const whole = joined.byteLength - (joined.byteLength % 4);
    rest = joined.subarray(whole);
    if (whole > 0) yield decodeGrpcWebText(joined.subarray(0, whole));
  }
  // An incomplete quantum at the end is refused by the decoder.
  if (rest.byteLength > 0) yield decodeGrpcWebText(rest);
}

/** Encodes bytes for a body of `application/grpc-web-text`. */
export function encodeGrpcWebText(bytes: Uint8Array): Uint8Array {
  return toUtf8(base64Encode(bytes));
}

/** Returns the length of `bytes` bytes in base64, allowing for padding and a few separate runs. */
export function grpcWebTextBytes(bytes: number): number {
  return Math.ceil(bytes / 3) * 4 + 8;
}
