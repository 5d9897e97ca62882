import type { Message } from "@bufbuild/protobuf";
import type { Compression } from "@connectrpc/connect/protocol";
import { type Exchange, noBytes } from "../../http/index.ts";
import type { RequestStream } from "./rules/index.ts";
import type { RequestMessages } from "../protocol.ts";
import { decodesPieces, type PieceDecompression } from "../envelope/compression.ts";
import { clientGoneError } from "../http-error.ts";
import { type MessageSplitter, readMessages } from "../envelope/message-splitter.ts";
import { JsonValueReader } from "./json-value-reader.ts";
import { LineReader } from "./line-reader.ts";
import type { MatchedRule, RestRule } from "./matched-rule.ts";

/**
 * Reads the messages that a client streams in a REST request's body. By default, each line is a message. A service may
 * accept consecutive JSON values. If the body is a google.api.HttpBody, the bytes become messages as they arrive.
 *
 * @param coding - the body's content coding, or `undefined` for none. A content coding must support decoding in pieces
 * @throws ConnectError while the body is read: `InvalidArgument` for an invalid message, or `ResourceExhausted` for a
 * message above the limit. Both errors name the line or the message's number
 */
export function readRestMessages(
  exchange: Exchange,
  { rule: { rpc, binding }, captures, query }: MatchedRule,
  coding: Compression | undefined,
): RequestMessages {
  const { contentType } = exchange.common;
  const { readMaxBytes } = rpc.options;
  const stream = binding.openStream({ captures, query, contentType });
  const reader = createReader(binding.bodyFormat, contentType, readMaxBytes, stream);
  if (coding === undefined || !decodesPieces(coding)) return readMessages(readPieces(exchange), reader);
  const controller = new AbortController();
  const messages = readMessages(decodePieces(exchange, coding, readMaxBytes, controller.signal), reader);
  return Object.assign(messages, { close: () => controller.abort(clientGoneError()) });
}

function createReader(
  { kind, jsonValues }: RestRule["binding"]["bodyFormat"],
  contentType: string | null,
  readMaxBytes: number,
  stream: RequestStream,
): MessageSplitter<Message> {
  if (kind === "bytes") return new ByteReader(readMaxBytes, stream);
  if (jsonValues === undefined || contentType === null || !jsonType.test(contentType)) {
    return new LineReader(readMaxBytes, stream);
  }
  return new JsonValueReader(readMaxBytes, stream, jsonValues === "or-array");
}

const jsonType = /^application\/json[\t ]*(?:;|$)/i;

/** Starts reading the body when the handler starts reading messages. */
async function* readPieces(exchange: Exchange): AsyncGenerator<Uint8Array> {
  if (exchange.body !== undefined) yield* exchange.body.pieces();
}

async function* decodePieces(
  exchange: Exchange,
  coding: PieceDecompression,
  freeBytes: number,
  signal: AbortSignal,
): AsyncGenerator<Uint8Array> {
  if (exchange.body !== undefined) yield* coding.decodePieces(exchange.body.pieces(), freeBytes, signal);
}

/** Converts each piece of a body to a message, or to several messages if the piece exceeds the message limit. */
class ByteReader implements MessageSplitter<Message> {
  readonly #readMaxBytes: number;
  readonly #stream: RequestStream;
  #piece = noBytes;

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
