import type { Message } from "@bufbuild/protobuf";
import type { Compression } from "@connectrpc/connect/protocol";
import type { Exchange } from "../../carriers/index.ts";
import type { MessageStream } from "../../rest/index.ts";
import { decodesPieces } from "../compression.ts";
import { readLines } from "./read-lines.ts";
import type { RestSelection } from "./rest-unary.ts";

/** Returns the content codings that the body of a call may have; those of a stream are decoded as they arrive. */
export function readableCodings({ procedure }: RestSelection): readonly Compression[] {
  const { acceptCompression } = procedure.options;
  return procedure.method.methodKind === "server_streaming"
    ? acceptCompression
    : acceptCompression.filter(decodesPieces);
}

/**
 * Reads the messages that a client streams in the body of a REST request: one on each line, or the bytes as they
 * arrive if the body is a google.api.HttpBody.
 *
 * @param coding - the content coding of the body, one of the {@link readableCodings}; `undefined` for none
 * @throws ConnectError while it is read: `InvalidArgument` for a message that cannot be read, `ResourceExhausted` for one
 * above the limit, each with the number of its line
 */
export function readRestMessages(
  exchange: Exchange,
  { procedure, binding, captures, query }: RestSelection,
  coding: Compression | undefined,
): AsyncIterable<Message> {
  const { contentType } = exchange.common;
  const { readMaxBytes } = procedure.options;
  const stream = binding.openStream({ captures, query, contentType });
  const pieces = readPieces(exchange, coding, readMaxBytes);
  const isBytes = binding.bodyFormat.kind === "bytes";
  return isBytes ? readBytes(pieces, readMaxBytes, stream) : readLines(pieces, readMaxBytes, stream);
}

/** Reads the body without its content coding, from when the handler asks for it. */
async function* readPieces(
  exchange: Exchange,
  coding: Compression | undefined,
  freeBytes: number,
): AsyncGenerator<Uint8Array> {
  if (exchange.bodyEmpty) return;
  const body = exchange.streamBody();
  yield* coding !== undefined && decodesPieces(coding) ? coding.decodePieces(body, freeBytes) : body;
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
