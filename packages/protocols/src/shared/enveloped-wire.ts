import type { Message } from "@bufbuild/protobuf";
import { Code, type ConnectError } from "@connectrpc/connect";
import { problem } from "@plantstore/protobuf";
import { type BodyPlan, type Exchange, type HeaderFields, markSingleUse, noBytes } from "@plantstore/http";
import type { Codec } from "../formats/format.ts";
import type { CallFormat } from "./content-type.ts";
import { decompressQueued } from "./queued-decompression.ts";
import {
  compressedFlag,
  Envelope,
  EnvelopeReader,
  type ForwardedMessage,
  isLargeEnvelope,
  readLargeEnvelope,
  readSingleEnvelope,
  toEnvelope,
  writeEnvelope,
} from "./envelope.ts";
import { headerFieldsToSend, LazyHeaders, withOwnReserved } from "./lazy-headers.ts";
import { readMessages } from "./message-splitter.ts";
import type { MessageEncodings } from "./message-encodings.ts";
import type { Rpc, ResponseParts } from "../rpc.ts";
import type { BinaryStreamWire, BinaryUnaryWire, StreamWire, UnaryWire } from "../protocol.ts";
import type { Timeout } from "./timeouts.ts";

/** The parsed header for a call with envelopes. */
export interface EnvelopedHeader {
  readonly encodings: MessageEncodings;
  readonly timeout: Timeout;
  /** The name of the header field for the response messages' encoding. */
  readonly encodingName: string;
  /** An error in header fields other than the encodings and the timeout. */
  readonly problem?: ConnectError | undefined;
}

/** The wire for calls with messages in envelopes, which are all gRPC and gRPC-Web calls, and Connect streams. */
export abstract class EnvelopedWire implements UnaryWire, StreamWire, BinaryUnaryWire, BinaryStreamWire {
  abstract readonly responseTrailer: LazyHeaders;
  readonly reportsErrorAtEnd = true;
  readonly timeoutMs: number | undefined;
  readonly problem: ConnectError | undefined;
  readonly body: BodyPlan;
  readonly requestHeader: LazyHeaders;
  readonly responseHeader: LazyHeaders;
  protected readonly headerFields: HeaderFields;
  protected readonly exchange: Exchange;
  protected readonly rpc: Rpc;
  protected readonly codec: Codec;
  protected readonly encodings: MessageEncodings;

  constructor(exchange: Exchange, rpc: Rpc, format: CallFormat, header: EnvelopedHeader) {
    const { codec, contentType } = format;
    const { encodings, timeout, encodingName } = header;
    const { response, acceptEncodingFields } = encodings;
    const encodingFields = response === undefined ? acceptEncodingFields : [encodingName, response.name];
    this.exchange = exchange;
    this.rpc = rpc;
    this.codec = codec;
    this.encodings = encodings;
    this.timeoutMs = timeout.timeoutMs;
    this.problem = header.problem ?? encodings.problem ?? timeout.error;
    this.headerFields = encodingFields.length === 0 ? contentType : [...contentType, ...encodingFields];
    this.body = format.body;
    this.requestHeader = new LazyHeaders(exchange.fields);
    this.responseHeader = new LazyHeaders(this.headerFields);
  }

  get binary(): (BinaryUnaryWire & BinaryStreamWire) | undefined {
    return this.codec.isBinary === true ? this : undefined;
  }

  readMessage(body: Uint8Array): Message | Promise<Message> {
    return this.#decode(this.readEnvelope(body));
  }

  readMessages(): AsyncIterable<Message> {
    const decode = (envelope: Envelope): Message | Promise<Message> => this.#decode(this.#decompress(envelope));
    return readMessages(this.pieces(), new EnvelopeReader(this.rpc.options.readMaxBytes, decode));
  }

  readEnvelope(body: Uint8Array): Envelope | Promise<Envelope> {
    return this.#decompress(readSingleEnvelope(body, this.rpc.options.readMaxBytes));
  }

  readParts(start: Uint8Array, rest: AsyncIterable<Uint8Array>): AsyncIterable<Uint8Array> | undefined {
    if (!isLargeEnvelope(start)) return undefined;
    return readLargeEnvelope(new Uint8Array(start), rest, this.rpc.options.readMaxBytes);
  }

  readEnvelopes(): AsyncIterable<ForwardedMessage> {
    const { options, forward } = this.rpc;
    const readPart = forward?.streamsLargeRequests === true ? (part: Uint8Array): ForwardedMessage => part : undefined;
    const decompress = (envelope: Envelope): Envelope | Promise<Envelope> => this.#decompress(envelope);
    return readMessages(
      this.pieces(),
      new EnvelopeReader<ForwardedMessage>(options.readMaxBytes, decompress, readPart),
    );
  }

  #decode(envelope: Envelope | Promise<Envelope>): Message | Promise<Message> {
    if (!(envelope instanceof Promise)) return this.codec.decode(envelope.bytes);
    return envelope.then(({ bytes }) => this.codec.decode(bytes));
  }

  #decompress(envelope: Envelope): Envelope | Promise<Envelope> {
    if (!envelope.compressed) return envelope;
    const { request } = this.encodings;
    // The gRPC compression document requires Internal for a compressed message without an encoding.
    if (request === undefined)
      throw problem("ERR_PROTOCOL", "the message is compressed, but the request names no encoding", {
        code: Code.Internal,
      });
    const decompressed = decompressQueued(request, envelope.bytes, this.rpc.options.readMaxBytes, this.exchange);
    return decompressed.then(toEnvelope);
  }

  protected pieces(): AsyncIterable<Uint8Array> {
    return this.exchange.body?.pieces() ?? noPieces;
  }

  encode(message: Message): Uint8Array | Promise<Uint8Array> {
    return this.envelop(this.codec.encode(message));
  }

  encodeEnvelope(message: ForwardedMessage): Uint8Array | Promise<Uint8Array> {
    const { response } = this.encodings;
    if (response !== undefined && message instanceof Envelope) return this.envelop(message.bytes);
    // Parts of a large message are never compressed.
    const bytes = message instanceof Envelope ? message.withPrefix : message;
    // Without interceptors, no code uses a forwarded message's bytes after they are sent.
    return this.rpc.forward?.intercept === undefined ? markSingleUse(bytes) : bytes;
  }

  /** Writes an encoded message in an envelope, compressed if the client accepts it and the message is large enough. */
  protected envelop(bytes: Uint8Array): Uint8Array | Promise<Uint8Array> {
    const { response } = this.encodings;
    if (response === undefined || bytes.byteLength < this.rpc.options.compressMinBytes) return writeEnvelope(0, bytes);
    return response.compress(bytes).then((compressed) => writeEnvelope(compressedFlag, compressed));
  }

  headerToSend(header: Headers): HeaderFields {
    const fields = headerFieldsToSend(header, this.headerFields);
    return fields === this.headerFields ? fields : withOwnReserved(fields, this.headerFields);
  }

  writeMessage({ message, header, trailer }: ResponseParts): void | Promise<void> {
    return this.respondWith(this.encode(message), header, trailer);
  }

  writeEnvelope(message: Envelope, header: Headers, trailer: Headers): void | Promise<void> {
    return this.respondWith(this.encodeEnvelope(message), header, trailer);
  }

  protected respondWith(
    envelope: Uint8Array | Promise<Uint8Array>,
    header: Headers,
    trailer: Headers,
  ): void | Promise<void> {
    const respond = (body: Uint8Array): void => this.respond(this.headerToSend(header), body, trailer, undefined);
    return envelope instanceof Promise ? envelope.then(respond) : respond(envelope);
  }

  writeError(error: ConnectError): void {
    this.respond(this.headerToSend(this.responseHeader), noBytes, this.responseTrailer, error);
  }

  begin(header: HeaderFields): void {
    this.exchange.begin(200, header);
  }

  write(bytes: Uint8Array): void | Promise<void> {
    return this.exchange.write(bytes);
  }

  abstract end(trailer: Headers, error: ConnectError | undefined): void;
  abstract respond(header: HeaderFields, bytes: Uint8Array, trailer: Headers, error: ConnectError | undefined): void;
}

const noPieces: AsyncIterable<Uint8Array> = {
  [Symbol.asyncIterator]: () => ({ next: () => Promise.resolve({ done: true, value: undefined }) }),
};
