import { Code, ConnectError } from "@connectrpc/connect";

/**
 * Decodes a body of `application/grpc-web-text`: base64, in one or several padded runs, because a
 * sender may encode each of its chunks by itself (gRPC-Web protocol, "Message Encoding").
 *
 * @throws ConnectError `InvalidArgument` for anything else
 */
export function decodeGrpcWebText(body: Uint8Array): Uint8Array {
  const text = Buffer.from(body.buffer, body.byteOffset, body.byteLength).toString("latin1");
  if (!runs.test(text)) throw new ConnectError("the body is not valid base64", Code.InvalidArgument);
  const pieces: Uint8Array[] = [];
  // node's decoder stops at padding, so each run is decoded by itself.
  for (const run of text.matchAll(/[^=]+=*/g)) pieces.push(Buffer.from(run[0], "base64"));
  return Buffer.concat(pieces);
}

/** Encodes bytes for a body of `application/grpc-web-text`. */
export function encodeGrpcWebText(bytes: Uint8Array): Uint8Array {
  const text = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString("base64");
  return Buffer.from(text, "latin1");
}

/** How many bytes of base64 stand for `bytes` bytes, padding and a few separate runs included. */
export function grpcWebTextBytes(bytes: number): number {
  return Math.ceil(bytes / 3) * 4 + 8;
}

// RFC 4648 §4, in whole quanta.
const runs = /^(?:[A-Za-z0-9+/]{4}|[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)*$/;
