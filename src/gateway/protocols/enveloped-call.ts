import type { Message } from "@bufbuild/protobuf";
import { Code, type ConnectError } from "@connectrpc/connect";
import type { Compression } from "@connectrpc/connect/protocol";
import { codedError } from "../errors/index.ts";
import { type Exchange, type HeaderFields, noBytes } from "../carriers/index.ts";
import { quote } from "../json/index.ts";
import type { Codec } from "./codec.ts";
import type { Spelling } from "./content-type.ts";
import { decompressInTurn } from "./decompress-in-turn.ts";
import {
  compressedFlag,
  type Envelope,
  envelopeBytes,
  envelopePrefixBytes,
  EnvelopeReader,
  readSingleEnvelope,
  writeEnvelope,
} from "./envelope.ts";
import { headerFieldsToSend, LazyHeaders } from "./lazy-headers.ts";
import { readMessages } from "./message-splitter.ts";
import { negotiateCoding, readAccept } from "./negotiation.ts";
import type { Procedure, ResponseParts } from "./procedure.ts";
import type { StreamWire, UnaryWire } from "./protocol.ts";
import { noTimeout, readGrpcTimeout, type Timeout } from "./timeouts.ts";

/** The header of a call with envelopes, as it was read. */
export interface EnvelopedHeader {
  readonly encodings: Encodings;
  readonly timeout: Timeout;
  /** The name of the field that says how the messages of the answer are compressed. */
  readonly encodingName: string;
  /** What is wrong with the header besides encodings and time-out. */
  readonly problem?: ConnectError | undefined;
}

/** Reads the header of a call of gRPC or gRPC-Web. */
export function readGrpcHeader({ common }: Exchange, { options }: Procedure): EnvelopedHeader {
  const { grpcEncoding, grpcAcceptEncoding } = common;
  const encodings = negotiateEncodings(
    options.acceptCompression,
    grpcEncoding,
    grpcAcceptEncoding,
    "grpc-accept-encoding",
  );
  const timeout = common.grpcTimeout === null ? noTimeout : readGrpcTimeout(common, options.maxTimeoutMs);
  return { encodings, timeout, encodingName: "grpc-encoding" };
}

/** A call whose messages have envelopes: every call of gRPC and gRPC-Web, and the streams of Connect. */
export abstract class EnvelopedCall implements UnaryWire, StreamWire {
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

  constructor(exchange: Exchange, procedure: Procedure, { codec, contentType }: Spelling, header: EnvelopedHeader) {
    const { encodings, timeout, encodingName, problem } = header;
    const { response, acceptFields } = encodings;
    const encodingFields = response === undefined ? acceptFields : [encodingName, response.name];
    this.exchange = exchange;
    this.procedure = procedure;
    this.codec = codec;
    this.encodings = encodings;
    this.timeoutMs = timeout.timeoutMs;
    this.problem = problem ?? encodings.problem ?? timeout.error;
    this.headerFields = encodingFields.length === 0 ? contentType : [...contentType, ...encodingFields];
    this.bodyLimitBytes = envelopePrefixBytes + procedure.options.readMaxBytes;
    this.requestHeader = new LazyHeaders(exchange.fields);
    this.responseHeader = new LazyHeaders(this.headerFields);
  }

  get isUnseen(): boolean {
    return this.codec.isUnseen === true;
  }

  announcedBytes(firstPiece: Uint8Array): number {
    return envelopeBytes(firstPiece);
  }

  readMessage(body: Uint8Array): Message | Promise<Message> {
    return this.#decode(readSingleEnvelope(body, this.procedure.options.readMaxBytes));
  }

  readMessages(): AsyncIterable<Message> {
    const { readMaxBytes } = this.procedure.options;
    return readMessages(this.pieces(), new EnvelopeReader(readMaxBytes, (envelope) => this.#decode(envelope)));
  }

  #decode({ compressed, bytes }: Envelope): Message | Promise<Message> {
    if (!compressed) return this.codec.decode(bytes, true);
    const { request } = this.encodings;
    // gRPC's compression document requires Internal for a compressed message without an encoding.
    if (request === undefined)
      throw codedError("ERR_PROTOCOL", "the message is compressed, but no encoding is named", Code.Internal);
    const plain = decompressInTurn(request, bytes, this.procedure.options.readMaxBytes, this.exchange);
    return plain.then((message) => this.codec.decode(message));
  }

  /** Returns the body of a client that streams, as it arrives. */
  protected pieces(): AsyncIterable<Uint8Array> {
    return this.exchange.body?.pieces() ?? noPieces;
  }

  encode(message: Message): Uint8Array | Promise<Uint8Array> {
    return this.envelopeOf(message) ?? this.envelop(this.codec.encode(message));
  }

  /** Returns the envelope that a message came in, if it can be sent as it is. */
  protected envelopeOf(message: Message): Uint8Array | undefined {
    return this.encodings.response === undefined ? this.codec.envelopeOf?.(message) : undefined;
  }

  /** Writes an encoded message in its envelope, compressed if the client asked for it and it is large enough. */
  protected envelop(bytes: Uint8Array): Uint8Array | Promise<Uint8Array> {
    const { response } = this.encodings;
    if (response === undefined || bytes.byteLength < this.procedure.options.compressMinBytes)
      return writeEnvelope(0, bytes);
    return response.compress(bytes).then((packed) => writeEnvelope(compressedFlag, packed));
  }

  headerToSend(header: Headers): HeaderFields {
    return headerFieldsToSend(header, this.headerFields);
  }

  writeMessage({ message, header, trailer }: ResponseParts): void | Promise<void> {
    const envelope = this.encode(message);
    const answer = (body: Uint8Array): void => this.answer(this.headerToSend(header), body, trailer, undefined);
    return envelope instanceof Promise ? envelope.then(answer) : answer(envelope);
  }

  writeError(error: ConnectError): void {
    this.answer(this.headerToSend(this.responseHeader), noBytes, this.responseTrailer, error);
  }

  begin(header: HeaderFields): void {
    this.exchange.begin(200, header);
  }

  write(bytes: Uint8Array): void | Promise<void> {
    return this.exchange.write(bytes);
  }

  abstract end(trailer: Headers, error: ConnectError | undefined): void;
  abstract answer(header: HeaderFields, bytes: Uint8Array, trailer: Headers, error: ConnectError | undefined): void;
}

/** How the messages of one call are compressed. */
export interface Encodings {
  /** How the client compresses its messages; `undefined` when it does not. */
  readonly request: Compression | undefined;
  /** How the answer is compressed; `undefined` when it is not. */
  readonly response: Compression | undefined;
  /** `Unimplemented` when the client uses an encoding that we cannot read. */
  readonly problem: ConnectError | undefined;
  /** The field that lists the encodings we can read, for answers that must tell the client. */
  readonly acceptFields: HeaderFields;
}

const none: HeaderFields = [];
const identity: Encodings = { request: undefined, response: undefined, problem: undefined, acceptFields: none };

/**
 * Negotiates the encodings of a call by the rules of gRPC's compression document, which Connect shares.
 *
 * @param sent - the value of the encoding header field
 * @param accepted - the value of the accept-encoding header field
 * @param acceptName - the name of that field, in which a refusal lists the encodings that can be read
 */
export function negotiateEncodings(
  available: readonly Compression[],
  sent: string | null,
  accepted: string | null,
  acceptName: string,
): Encodings {
  if (sent === null && accepted === null) return identity;
  let request: Compression | undefined;
  if (sent !== null && sent !== "identity" && sent !== "") {
    request = available.find((compression) => compression.name === sent);
    if (request === undefined) {
      const readable = available.map((compression) => compression.name).join(",");
      const message = `unknown compression ${quote(sent)}: supported encodings are ${readable}`;
      const problem = codedError("ERR_ENCODING_UNSUPPORTED", message, Code.Unimplemented);
      return { request, response: undefined, problem, acceptFields: [acceptName, readable] };
    }
  }
  // A client that names no accepted encoding accepts the one it sends.
  const response = accepted === null || accepted === "" ? request : preferred(available, accepted);
  return { request, response, problem: undefined, acceptFields: none };
}

let last:
  | { readonly available: unknown; readonly accepted: string; readonly chosen: Compression | undefined }
  | undefined;

/** Chooses the encoding with the highest weight, or of equal ones the first that the client lists. */
function preferred(available: readonly Compression[], accepted: string): Compression | undefined {
  // Clients of gRPC repeat it with every call.
  if (last?.available === available && last.accepted === accepted) return last.chosen;
  const listed = readAccept(accepted).flatMap(({ name }) =>
    available.filter((compression) => compression.name === name),
  );
  last = { available, accepted, chosen: negotiateCoding(accepted, [...listed, ...available]) };
  return last.chosen;
}

const noPieces: AsyncIterable<Uint8Array> = {
  [Symbol.asyncIterator]: () => ({ next: () => Promise.resolve({ done: true, value: undefined }) }),
};
