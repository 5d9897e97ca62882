import type { Message } from "@bufbuild/protobuf";
import { Code, type ConnectError } from "@connectrpc/connect";
import type { Compression } from "@connectrpc/connect/protocol";
import type { Exchange } from "../../exchange/index.ts";
import { errorWithHttpStatus, type MessageStream } from "../../rest/index.ts";
import type { StreamCompression } from "../compression.ts";
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
export async function* readRestMessages(
  exchange: Exchange,
  { procedure, binding, captures, query }: RestSelection,
  coding: Compression | undefined,
): AsyncGenerator<Message> {
  const { contentType } = exchange.common;
  const { readMaxBytes, acceptCompression } = procedure.options;
  const stream = binding.openStream({ captures, query, contentType });
  if (!exchange.bodyEmpty) {
    const body = exchange.streamBody();
    if (coding !== undefined && !decodesPieces(coding)) throw wrongCoding(acceptCompression);
    const pieces = coding === undefined ? body : coding.decodePieces(body, readMaxBytes);
    const isBytes = binding.bodyFormat.kind === "bytes";
    const messages = isBytes ? readBytes(pieces, readMaxBytes, stream) : readLines(pieces, readMaxBytes, stream);
    for await (const message of messages) yield message;
  }
  const last = stream.end();
  if (last !== undefined) yield last;
}

/** Whether a coding can be read as it arrives; one that the user has added decodes all bytes at once. */
function decodesPieces(coding: Compression): coding is StreamCompression {
  return "decodePieces" in coding;
}

function wrongCoding(available: readonly Compression[]): ConnectError {
  const known = ["identity", ...available.filter(decodesPieces).map(({ name }) => name)].join(", ");
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
}
