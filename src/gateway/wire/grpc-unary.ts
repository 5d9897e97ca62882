import type { Message } from "@bufbuild/protobuf";
import type { ConnectError, UnaryResponse } from "@connectrpc/connect";
import { parseTimeout, setTrailerStatus } from "@connectrpc/connect/protocol-grpc";
import type { Codec } from "./codec.ts";
import { type Encodings, grpcEncodingFields, negotiateEncodings } from "./compression.ts";
import type { Exchange } from "./exchange.ts";
import { type HeaderFields, LazyHeaders, readField, toFields } from "./header-fields.ts";
import { envelopedLimitBytes, readEnvelopedMessage, writeEnvelopedMessage } from "./message-body.ts";
import type { Procedure, UnaryProcedure } from "./procedure.ts";
import type { UnaryWire } from "./unary-wire.ts";

/** A unary call of gRPC over HTTP/2, and over HTTP/1.1 for clients that read its trailers. */
export class GrpcUnary implements UnaryWire {
  readonly protocol = "grpc";
  readonly timeoutMs: number | undefined;
  readonly problem: ConnectError | undefined;
  readonly bodyLimitBytes: number;
  readonly headerFields: HeaderFields;
  readonly trailerFields: HeaderFields = statusOk;
  readonly #exchange: Exchange;
  readonly #procedure: Procedure;
  readonly #codec: Codec;
  readonly #encodings: Encodings;

  constructor(exchange: Exchange, procedure: Procedure, unary: UnaryProcedure, format: "binary" | "json") {
    const { options } = procedure;
    const sent = readField(exchange.fields, "grpc-encoding");
    const accepted = readField(exchange.fields, "grpc-accept-encoding");
    const timeout = parseTimeout(readField(exchange.fields, "grpc-timeout"), options.maxTimeoutMs);
    this.#exchange = exchange;
    this.#procedure = procedure;
    this.#codec = unary.codecs[format];
    this.#encodings = negotiateEncodings(options.acceptCompression, sent, accepted, "grpc-accept-encoding");
    this.timeoutMs = timeout.timeoutMs;
    this.problem = this.#encodings.problem ?? timeout.error;
    this.bodyLimitBytes = envelopedLimitBytes(options);
    const contentType = format === "binary" ? protoHeader : jsonHeader;
    const encodingFields = grpcEncodingFields(this.#encodings);
    this.headerFields = encodingFields.length === 0 ? contentType : [...contentType, ...encodingFields];
  }

  readMessage(body: Uint8Array): Message | Promise<Message> {
    return readEnvelopedMessage(body, this.#codec, this.#encodings.request, this.#procedure.options.readMaxBytes);
  }

  writeMessage(response: UnaryResponse): void | Promise<void> {
    const { options } = this.#procedure;
    const body = writeEnvelopedMessage(response.message, this.#codec, this.#encodings.response, options);
    const answer = (bytes: Uint8Array): void =>
      this.#exchange.answer(200, this.#header(response.header), bytes, withStatusOk(response.trailer));
    return body instanceof Promise ? body.then(answer) : answer(body);
  }

  writeError(error: ConnectError, header: LazyHeaders, trailer: LazyHeaders): void {
    setTrailerStatus(trailer, error);
    // "Trailers-Only": one header section says it all, unless the handler has set header fields of its own.
    if (header.pristine) this.#exchange.answer(200, [...this.headerFields, ...trailer.fields]);
    else this.#exchange.answer(200, this.#header(header), undefined, trailer.fields);
  }

  #header(header: Headers): HeaderFields {
    return fieldsOf(header, this.headerFields);
  }
}

/** Answers a gRPC request that never became a call. `Trailers-Only`, as gRPC over HTTP/2 names it. */
export function refuseGrpc(exchange: Exchange, contentType: string, error: ConnectError): void {
  const trailer = new LazyHeaders(["content-type", contentType]);
  setTrailerStatus(trailer, error);
  exchange.answer(200, trailer.fields);
}

/**
 * The fields of a response header or trailer.
 *
 * @param own - the protocol's fields, which hold whatever an interceptor puts in the object's place
 */
export function fieldsOf(headers: Headers, own: HeaderFields): HeaderFields {
  if (headers instanceof LazyHeaders) return headers.fields;
  const given = toFields(headers);
  // Of what the protocol has said nothing is said again.
  return [...own, ...given.filter((_, at) => readField(own, given[at - (at % 2)] as string) === null)];
}

const statusOk: HeaderFields = Object.freeze(["grpc-status", "0"]);
const protoHeader: HeaderFields = Object.freeze(["content-type", "application/grpc+proto"]);
const jsonHeader: HeaderFields = Object.freeze(["content-type", "application/grpc+json"]);

function withStatusOk(trailer: Headers): HeaderFields {
  return fieldsOf(trailer, statusOk);
}
