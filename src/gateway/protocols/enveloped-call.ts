import type { Message } from "@bufbuild/protobuf";
import type { ConnectError } from "@connectrpc/connect";
import type { Exchange, HeaderFields } from "../carriers/index.ts";
import type { CallProtocol, Protocol } from "./call-protocol.ts";
import type { Codec } from "./codec.ts";
import type { Encodings, EnvelopedHeader } from "./call-header.ts";
import { decompressInTurn } from "./decompress-in-turn.ts";
import {
  type Decompress,
  envelopeBytes,
  envelopePrefixBytes,
  readEnvelopedMessage,
  readEnvelopedMessages,
  writeEnvelopedMessage,
} from "./envelope.ts";
import { headerFieldsToSend, LazyHeaders } from "./lazy-headers.ts";
import type { Procedure } from "./procedure.ts";

/** A call whose messages have envelopes: every call of gRPC and gRPC-Web, and the streams of Connect. */
export abstract class EnvelopedCall implements CallProtocol {
  abstract readonly protocol: Protocol;
  abstract readonly responseTrailer: LazyHeaders;
  readonly timeoutMs: number | undefined;
  readonly problem: ConnectError | undefined;
  bodyLimitBytes: number;
  readonly requestHeader: LazyHeaders;
  readonly responseHeader: LazyHeaders;
  protected readonly headerFields: HeaderFields;
  protected readonly exchange: Exchange;
  protected readonly procedure: Procedure;
  protected readonly codec: Codec;
  protected readonly encodings: Encodings;

  constructor(exchange: Exchange, procedure: Procedure, format: "binary" | "json", header: EnvelopedHeader) {
    const { encodings, timeoutMs, problem, headerFields } = header;
    this.exchange = exchange;
    this.procedure = procedure;
    this.codec = procedure.codecs[format];
    this.encodings = encodings;
    this.timeoutMs = timeoutMs;
    this.problem = problem;
    this.headerFields = headerFields;
    this.bodyLimitBytes = envelopePrefixBytes + procedure.options.readMaxBytes;
    this.requestHeader = new LazyHeaders(exchange.fields);
    this.responseHeader = new LazyHeaders(headerFields);
  }

  announcedBytes(firstPiece: Uint8Array): number {
    return envelopeBytes(firstPiece);
  }

  readMessage(body: Uint8Array): Message | Promise<Message> {
    return readEnvelopedMessage(body, this.codec, this.#decompress, this.procedure.options.readMaxBytes);
  }

  readMessages(): AsyncIterable<Message> {
    const { readMaxBytes } = this.procedure.options;
    return readEnvelopedMessages(this.pieces(), this.codec, this.#decompress, readMaxBytes);
  }

  get #decompress(): Decompress | undefined {
    const { request } = this.encodings;
    const { readMaxBytes } = this.procedure.options;
    return request && ((bytes) => decompressInTurn(request, bytes, readMaxBytes, this.exchange));
  }

  /** Returns the body of a client that streams, as it arrives. */
  protected pieces(): AsyncIterable<Uint8Array> {
    return this.exchange.body?.pieces() ?? noPieces;
  }

  encode(message: Message): Uint8Array | Promise<Uint8Array> {
    return writeEnvelopedMessage(message, this.codec, this.encodings.response, this.procedure.options);
  }

  headerToSend(header: Headers): HeaderFields {
    return headerFieldsToSend(header, this.headerFields);
  }

  begin(header: HeaderFields): void {
    this.exchange.begin(200, header);
  }

  write(bytes: Uint8Array): void | Promise<void> {
    return this.exchange.write(bytes);
  }
}

const noPieces: AsyncIterable<Uint8Array> = {
  [Symbol.asyncIterator]: () => ({ next: () => Promise.resolve({ done: true, value: undefined }) }),
};
