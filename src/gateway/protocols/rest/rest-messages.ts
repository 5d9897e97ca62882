import type { Message } from "@bufbuild/protobuf";
import { Code, type ConnectError } from "@connectrpc/connect";
import type { Compression } from "@connectrpc/connect/protocol";
import type { Exchange } from "../../carriers/index.ts";
import { errorWithHttpStatus, type MessageStream } from "../../rest/index.ts";
import { isStreamCompression } from "../compression.ts";
import { readLines } from "./read-lines.ts";
import type { RestSelection } from "./rest-unary.ts";

/**
 * Reads the messages that a client streams in the body of a REST request: one on each line, or the bytes as they
 * arrive if the body is a google.api.HttpBody.
 *
 * @param coding - the content coding of the body; `undefined` for none
 * @throws ConnectError while it is read: `InvalidArgument` for a message that cannot be read, `ResourceExhausted` for one
 * above the limit, each with the number of its line; 415 for a coding that cannot be read as it arrives
 */
export function readRestMessages(
  exchange: Exchange,
  { procedure, binding, captures, query }: RestSelection,
  coding: Compression | undefined,
): AsyncIterable<Message> {
  const { contentType } = exchange.common;
  const { readMaxBytes, acceptCompression } = procedure.options;
  const stream = binding.openStream({ captures, query, contentType });
  const pieces = readPieces(exchange, coding, readMaxBytes, acceptCompression);
  const isBytes = binding.bodyFormat.kind === "bytes";
  return isBytes ? readBytes(pieces, readMaxBytes, stream) : readLines(pieces, readMaxBytes, stream);
}

/** Reads the body without its content coding, from when the handler asks for it. */
async function* readPieces(
  exchange: Exchange,
  coding: Compression | undefined,
  freeBytes: number,
  available: readonly Compression[],
): AsyncGenerator<Uint8Array> {
  if (exchange.bodyEmpty) return;
  if (coding !== undefined && !isStreamCompression(coding)) throw wrongCoding(available);
  const body = exchange.streamBody();
  for await (const piece of coding === undefined ? body : coding.decodePieces(body, freeBytes)) yield piece;
}

function wrongCoding(available: readonly Compression[]): ConnectError {
  const known = ["identity", ...available.filter(isStreamCompression).map(({ name }) => name)].join(", ");
  return errorWithHttpStatus(`the content encoding must be one of ${known}`, Code.InvalidArgument, 415);
}

/** Reads bytes as messages of as many as arrived at once, up to the limit of a message. */
async function* readBytes(
  pieces: AsyncIterable<Uint8Array>,
  readMaxBytes: number,
  stream: MessageStream,
): AsyncGenerator<Message> {
  for await (const piece of pieces) {
    for (let at = 0; at < piece.byteLength; at += readMaxBytes)
      yield stream.read(piece.subarray(at, at + readMaxBytes));
  }
  const last = stream.end();
  if (last !== undefined) yield last;
}
