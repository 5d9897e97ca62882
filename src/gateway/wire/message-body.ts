import type { Message } from "@bufbuild/protobuf";
import { Code, ConnectError } from "@connectrpc/connect";
import type { Compression, UniversalHandlerOptions } from "@connectrpc/connect/protocol";
import type { Codec } from "./codec.ts";
import { compressedFlag, envelopePrefixBytes, readSingleEnvelope, writeEnvelope } from "./envelope.ts";

/** Reads the one enveloped message of a gRPC or gRPC-Web call. */
export function readEnvelopedMessage(
  body: Uint8Array,
  codec: Codec,
  compression: Compression | undefined,
  readMaxBytes: number,
): Message | Promise<Message> {
  const { compressed, bytes } = readSingleEnvelope(body, readMaxBytes);
  if (!compressed) return codec.decode(bytes);
  // gRPC's compression document names Internal for a compressed message without an encoding.
  if (compression === undefined)
    throw new ConnectError("the message is compressed, but no encoding is named", Code.Internal);
  return compression.decompress(bytes, readMaxBytes).then((plain) => codec.decode(plain));
}

/** Writes a message in its envelope, compressed where the client asked for it and it is worth it. */
export function writeEnvelopedMessage(
  message: Message,
  codec: Codec,
  compression: Compression | undefined,
  options: UniversalHandlerOptions,
): Buffer | Promise<Buffer> {
  const bytes = codec.encode(message);
  if (compression === undefined || bytes.byteLength < options.compressMinBytes) return writeEnvelope(0, bytes);
  return compression.compress(bytes).then((packed) => writeEnvelope(compressedFlag, packed));
}

/** The most bytes that an enveloped message of the allowed size can take. */
export function envelopedLimitBytes(options: UniversalHandlerOptions): number {
  return options.readMaxBytes + envelopePrefixBytes;
}
