import { base64Encode } from "@bufbuild/protobuf/wire";
import type { ConnectError } from "@connectrpc/connect";
import { problem } from "../../protobuf/index.ts";
import { allocateBuffer, concatBytes, noBytes, toUtf8 } from "../../http/index.ts";

/**
 * Decodes an `application/grpc-web-text` body. The body is one or more runs of padded base64, because a sender may
 * encode each chunk separately (gRPC-Web protocol, "Message Encoding").
 *
 * @throws ConnectError `InvalidArgument` if the body is not valid base64
 */
export function decodeGrpcWebText(body: Uint8Array): Uint8Array {
  if (body.byteLength % 4 !== 0) throw invalidBase64Error();
  // Allocates a separate buffer. The application could not transfer the ArrayBuffer of a slice from Node's buffer pool.
  const bytes = allocateBuffer((body.byteLength / 4) * 3);
  let end = 0;
  // A single loop decodes all runs, because a body may have a separate run for each byte.
  for (let at = 0; at < body.byteLength; at += 4) {
    const padding = body[at + 3] !== paddingByte ? 0 : body[at + 2] !== paddingByte ? 1 : 2;
    const first = sextetOf(body, at);
    const second = sextetOf(body, at + 1);
    const third = padding === 2 ? 0 : sextetOf(body, at + 2);
    const fourth = padding > 0 ? 0 : sextetOf(body, at + 3);
    if ((first | second | third | fourth) < 0) throw invalidBase64Error();
    bytes[end] = (first << 2) | (second >> 4);
    bytes[end + 1] = (second << 4) | (third >> 2);
    bytes[end + 2] = (third << 6) | fourth;
    end += 3 - padding;
  }
  return bytes.subarray(0, end);
}

/** Decodes an `application/grpc-web-text` body in pieces. Groups of four characters may be split between pieces. */
export async function* decodeTextPieces(pieces: AsyncIterable<Uint8Array>): AsyncGenerator<Uint8Array> {
  let incompleteGroup = noBytes;
  for await (const piece of pieces) {
    const joined = incompleteGroup.byteLength === 0 ? piece : concatBytes([incompleteGroup, piece]);
    const end = joined.byteLength - (joined.byteLength % 4);
    incompleteGroup = joined.subarray(end);
    if (end > 0) yield decodeGrpcWebText(joined.subarray(0, end));
  }
  // An incomplete group at the end is rejected by `decodeGrpcWebText`.
  if (incompleteGroup.byteLength > 0) yield decodeGrpcWebText(incompleteGroup);
}

/** Encodes bytes for an `application/grpc-web-text` body. */
export function encodeGrpcWebText(bytes: Uint8Array): Uint8Array {
  return toUtf8(base64Encode(bytes));
}

/** Returns the maximum base64 length of a body, which may be encoded in up to three padded runs. */
export function grpcWebTextBytes(bytes: number): number {
  return Math.ceil(bytes / 3) * 4 + 8;
}

const alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
const paddingByte = 0x3d;
// The six bits of each base64 character (RFC 4648 §4), by character code. Other characters have the value -1.
const sextets = new Int8Array(256).fill(-1);
for (let sextet = 0; sextet < alphabet.length; sextet++) sextets[alphabet.charCodeAt(sextet)] = sextet;

function sextetOf(body: Uint8Array, at: number): number {
  return sextets[body[at] ?? paddingByte] ?? -1;
}

function invalidBase64Error(): ConnectError {
  return problem("ERR_PROTOCOL", "the body is not valid base64");
}
