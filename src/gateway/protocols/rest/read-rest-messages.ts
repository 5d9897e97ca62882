import type { Message } from "@bufbuild/protobuf";
import type { Compression } from "@connectrpc/connect/protocol";
import type { Exchange } from "../../carriers/index.ts";
import type { RequestStream } from "../../rest/index.ts";
import { decodesPieces } from "../compression.ts";
import { type MessageSplitter, readMessages } from "../message-splitter.ts";
import { LineReader } from "./line-reader.ts";
import type { RestSelection } from "./rest-unary.ts";

/** Returns the content codings that the body of a call may have; those of a stream are decoded as they arrive. */
export function readableCodings({ procedure }: RestSelection): readonly Compression[] {
  const { acceptCompression } = procedure.options;
  return procedure.method.methodKind === "server_streaming"
    ? acceptCompression
    : acceptCompression.filter(decodesPieces);
}

/**
 * Reads the messages that a client streams in the body of a REST request: one on each line, or the bytes as they arrive
 * if the body is a google.api.HttpBody.
 *
 * @param coding - the content coding of the body, one of the {@link readableCodings}; `undefined` for none
 * @throws ConnectError while it is read: `InvalidArgument` for a message that cannot be read, `ResourceExhausted` for
 * one above the limit, each with the number of its line
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
  const Reader = binding.bodyFormat.kind === "bytes" ? ByteReader : LineReader;
  return readMessages(pieces, new Reader(readMaxBytes, stream));
}

/** Reads the body, without its content coding, once the handler asks for it. */
async function* readPieces(
  exchange: Exchange,
  coding: Compression | undefined,
  freeBytes: number,
): AsyncGenerator<Uint8Array> {
  if (exchange.bodyEmpty) return;
  const body = exchange.streamBody();
  yield* coding !== undefined && decodesPieces(coding) ? coding.decodePieces(body, freeBytes) : body;
}

/** Reads bytes as messages: each holds what arrived at once, up to the limit of a message. */
class ByteReader implements MessageSplitter<Message> {
  readonly #readMaxBytes: number;
  readonly #stream: RequestStream;
  #piece = nothing;

  constructor(readMaxBytes: number, stream: RequestStream) {
    this.#readMaxBytes = readMaxBytes;
    this.#stream = stream;
  }

  add(piece: Uint8Array): void {
    this.#piece = piece;
  }

  take(): Message | undefined {
    const piece = this.#piece;
    if (piece.byteLength === 0) return undefined;
    this.#piece = piece.subarray(this.#readMaxBytes);
    return this.#stream.read(piece.subarray(0, this.#readMaxBytes));
  }

  end(): Message | undefined {
    return this.#stream.end();
  }
}

const nothing: Uint8Array = new Uint8Array(0);
