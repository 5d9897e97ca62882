import type { Message } from "@bufbuild/protobuf";
import type { ConnectError, UnaryResponse } from "@connectrpc/connect";
import { parseTimeout, setTrailerStatus } from "@connectrpc/connect/protocol-grpc";
import { trailerSerialize } from "@connectrpc/connect/protocol-grpc-web";
import type { Codec } from "./codec.ts";
import { type Encodings, grpcEncodingFields, negotiateEncodings } from "./compression.ts";
import { trailerFlag, writeEnvelope } from "./envelope.ts";
import type { Exchange } from "./exchange.ts";
import { fieldsOf } from "./grpc-unary.ts";
import { decodeGrpcWebText, encodeGrpcWebText, grpcWebTextBytes } from "./grpc-web-text.ts";
import { type HeaderFields, LazyHeaders, readField } from "./header-fields.ts";
import { envelopedLimitBytes, readEnvelopedMessage, writeEnvelopedMessage } from "./message-body.ts";
import type { Procedure, UnaryProcedure } from "./procedure.ts";
import type { UnaryWire } from "./unary-wire.ts";

/** A unary call of gRPC-Web, binary or base64 text: gRPC with its trailer section at the end of the body. */
export class GrpcWebUnary implements UnaryWire {
  readonly protocol = "grpc-web";
  readonly timeoutMs: number | undefined;
  readonly problem: ConnectError | undefined;
  readonly bodyLimitBytes: number;
  readonly headerFields: HeaderFields;
  readonly trailerFields: HeaderFields = statusOk;
  readonly #exchange: Exchange;
  readonly #procedure: Procedure;
  readonly #codec: Codec;
  readonly #encodings: Encodings;
  readonly #text: boolean;

  constructor(
    exchange: Exchange,
    procedure: Procedure,
    unary: UnaryProcedure,
    format: "binary" | "json",
    text: boolean,
  ) {
    const { options } = procedure;
    const sent = readField(exchange.fields, "grpc-encoding");
    const accepted = readField(exchange.fields, "grpc-accept-encoding");
    const timeout = parseTimeout(readField(exchange.fields, "grpc-timeout"), options.maxTimeoutMs);
    this.#exchange = exchange;
    this.#procedure = procedure;
    this.#codec = unary.codecs[format];
    this.#encodings = negotiateEncodings(options.acceptCompression, sent, accepted, "grpc-accept-encoding");
    this.#text = text;
    this.timeoutMs = timeout.timeoutMs;
    this.problem = this.#encodings.problem ?? timeout.error;
    const limitBytes = envelopedLimitBytes(options);
    this.bodyLimitBytes = text ? grpcWebTextBytes(limitBytes) : limitBytes;
    const contentType = ["content-type", grpcWebContentType(format, text)];
    const encodingFields = grpcEncodingFields(this.#encodings);
    this.headerFields = encodingFields.length === 0 ? contentType : [...contentType, ...encodingFields];
  }

  readMessage(body: Uint8Array): Message | Promise<Message> {
    const bytes = this.#text ? decodeGrpcWebText(body) : body;
    return readEnvelopedMessage(bytes, this.#codec, this.#encodings.request, this.#procedure.options.readMaxBytes);
  }

  writeMessage(response: UnaryResponse): void | Promise<void> {
    const { options } = this.#procedure;
    const message = writeEnvelopedMessage(response.message, this.#codec, this.#encodings.response, options);
    const trailer = trailerEnvelope(response.trailer);
    const answer = (bytes: Uint8Array): void => this.#answer(response.header, Buffer.concat([bytes, trailer]));
    return message instanceof Promise ? message.then(answer) : answer(message);
  }

  writeError(error: ConnectError, header: LazyHeaders, trailer: LazyHeaders): void {
    setTrailerStatus(trailer, error);
    this.#answer(header, trailerEnvelope(trailer));
  }

  #answer(header: Headers, body: Uint8Array): void {
    const bytes = this.#text ? encodeGrpcWebText(body) : body;
    this.#exchange.answer(200, fieldsOf(header, this.headerFields), bytes);
  }
}

/** Answers a gRPC-Web request that never became a call. */
export function refuseGrpcWeb(exchange: Exchange, contentType: string, error: ConnectError): void {
  const trailer = new LazyHeaders([]);
  setTrailerStatus(trailer, error);
  const body = trailerEnvelope(trailer);
  const text = contentType.startsWith(textContentType);
  exchange.answer(200, ["content-type", contentType], text ? encodeGrpcWebText(body) : body);
}

/** The content type of a gRPC-Web answer. */
export function grpcWebContentType(format: "binary" | "json", text: boolean): string {
  return `${text ? textContentType : "application/grpc-web"}+${format === "binary" ? "proto" : "json"}`;
}

const textContentType = "application/grpc-web-text";
const statusOk: HeaderFields = Object.freeze(["grpc-status", "0"]);
// What nearly every answer ends with: an envelope around "grpc-status: 0".
const statusOkEnvelope = writeEnvelope(trailerFlag, Buffer.from("grpc-status: 0\r\n"));

function trailerEnvelope(trailer: Headers): Uint8Array {
  if (trailer instanceof LazyHeaders && trailer.pristine && trailer.fields === statusOk) return statusOkEnvelope;
  // What an interceptor puts in its place does not have the status.
  const section = trailer instanceof LazyHeaders ? trailer : new LazyHeaders(fieldsOf(trailer, statusOk));
  return writeEnvelope(trailerFlag, trailerSerialize(section));
}
