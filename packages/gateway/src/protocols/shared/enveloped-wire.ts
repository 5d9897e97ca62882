import type { Message } from "@bufbuild/protobuf";
import { Code, type ConnectError } from "@connectrpc/connect";
import { problem } from "../../errors/index.ts";
import { type BodyPlan, type Exchange, type HeaderFields, noBytes } from "../../exchange/index.ts";
import type { Codec } from "../formats/format.ts";
import type { CallFormat } from "./content-type.ts";
import { decompressQueued } from "./queued-decompression.ts";
import { messageTooLarge } from "./compression.ts";
import {
  compressedFlag,
  type Envelope,
  envelopeBytes,
  envelopePrefixBytes,
  EnvelopeReader,
  readSingleEnvelope,
  writeEnvelope,
} from "./envelope.ts";
import { headerFieldsToSend, LazyHeaders, withOwnReserved } from "./lazy-headers.ts";
import { readMessages } from "./message-splitter.ts";
import type { MessageEncodings } from "./message-encodings.ts";
import type { Rpc, ResponseParts } from "../rpc.ts";
import type { StreamWire, UnaryWire } from "../protocol.ts";
import type { Timeout } from "./timeouts.ts";

/** The parsed header of a call with envelopes. */
export interface EnvelopedHeader {
  readonly encodings: MessageEncodings;
  readonly timeout: Timeout;
  /** The name of the header field with the encoding of the response messages. */
  readonly encodingName: string;
  /** An error in the header other than those of encodings and timeout. */
  readonly problem?: ConnectError | undefined;
}

/** A call whose messages have envelopes: every call of gRPC and gRPC-Web, and the streams of Connect. */
export abstract class EnvelopedWire implements UnaryWire, StreamWire {
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

  readMessage(body: Uint8Array): Message | Promise<Message> {
    return this.#decode(readSingleEnvelope(body, this.rpc.options.readMaxBytes));
  }

  readLargeMessage(start: Uint8Array, rest: AsyncIterable<Uint8Array>): Message {
    const parts = this.codec.envelopes?.parts;
    if (parts === undefined) throw new TypeError("the codec needs complete messages");
    const { readMaxBytes } = this.rpc.options;
    // Checked before the call is forwarded.
    if (envelopeBytes(start) > envelopePrefixBytes + readMaxBytes) throw messageTooLarge(readMaxBytes);
    const reader = this.#createReader();
    reader.add(start);
    return parts.join(readMessages(rest, reader));
  }

  readMessages(): AsyncIterable<Message> {
    return readMessages(this.pieces(), this.#createReader());
  }

  #createReader(): EnvelopeReader<Message> {
    const decode = (envelope: Envelope): Message | Promise<Message> => this.#decode(envelope);
    return new EnvelopeReader(this.rpc.options.readMaxBytes, decode, this.codec.envelopes?.parts?.open);
  }

  #decode(envelope: Envelope): Message | Promise<Message> {
    const { envelopes } = this.codec;
    if (!envelope.compressed) {
      return envelopes === undefined ? this.codec.decode(envelope.bytes) : envelopes.open(envelope.withPrefix);
    }
    const { request } = this.encodings;
    // The compression document of gRPC requires Internal for a compressed message without an encoding.
    if (request === undefined)
      throw problem("ERR_PROTOCOL", "the message is compressed, but the request names no encoding", {
        code: Code.Internal,
      });
    const decompressed = decompressQueued(request, envelope.bytes, this.rpc.options.readMaxBytes, this.exchange);
    return decompressed.then((message) => this.codec.decode(message));
  }

  /** Returns the body of a streaming client as it arrives. */
  protected pieces(): AsyncIterable<Uint8Array> {
    return this.exchange.body?.pieces() ?? noPieces;
  }

  encode(message: Message): Uint8Array | Promise<Uint8Array> {
    return this.receivedEnvelope(message) ?? this.envelop(this.codec.encode(message));
  }

  /** Returns the received envelope of a message, if it can be sent unchanged. */
  protected receivedEnvelope(message: Message): Uint8Array | undefined {
    const { envelopes } = this.codec;
    const isUnchanged = this.encodings.response === undefined || envelopes?.parts?.isPart(message) === true;
    return isUnchanged ? envelopes?.of(message) : undefined;
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
    const envelope = this.encode(message);
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
