import type { Message } from "@bufbuild/protobuf";
import type { ConnectError } from "@connectrpc/connect";
import { endStreamFlag, endStreamToJson, parseTimeout } from "@connectrpc/connect/protocol-connect";
import type { Codec } from "../codec.ts";
import { type Encodings, negotiateEncodings } from "../compression.ts";
import {
  envelopeBytes,
  envelopePrefixBytes,
  readEnvelopedMessage,
  readEnvelopedMessages,
  writeEnvelope,
  writeEnvelopedMessage,
} from "../envelope.ts";
import { concatBytes, type Exchange, type HeaderFields, toUtf8 } from "../../carriers/index.ts";
import { fieldsToSend, LazyHeaders } from "../lazy-headers.ts";
import type { Procedure } from "../procedure.ts";
import type { StreamProtocol } from "../call-protocol.ts";
import { versionProblem } from "./connect-unary.ts";

/** A streaming call of the Connect protocol, which ends with an enveloped message of its own. */
export class ConnectStream implements StreamProtocol {
  readonly protocol = "connect";
  readonly timeoutMs: number | undefined;
  readonly problem: ConnectError | undefined;
  readonly bodyLimitBytes: number;
  readonly requestHeader: LazyHeaders;
  readonly responseHeader: LazyHeaders;
  readonly responseTrailer: LazyHeaders = new LazyHeaders([]);
  readonly #headerFields: HeaderFields;
  readonly #exchange: Exchange;
  readonly #procedure: Procedure;
  readonly #codec: Codec;
  readonly #encodings: Encodings;
  constructor(exchange: Exchange, procedure: Procedure, format: "binary" | "json") {
    const { options } = procedure;
    const sent = exchange.get("connect-content-encoding");
    const accepted = exchange.get("connect-accept-encoding");
    const timeout = parseTimeout(exchange.common.connectTimeoutMs, options.maxTimeoutMs);
    this.requestHeader = new LazyHeaders(exchange.fields);
    this.#exchange = exchange;
    this.#procedure = procedure;
    this.#codec = procedure.codecs[format];
    this.#encodings = negotiateEncodings(options.acceptCompression, sent, accepted, "connect-accept-encoding");
    this.timeoutMs = timeout.timeoutMs;
    this.problem = versionProblem(exchange, procedure, undefined) ?? this.#encodings.problem ?? timeout.error;
    this.bodyLimitBytes = envelopePrefixBytes + options.readMaxBytes;
    const { response, acceptFields } = this.#encodings;
    const encodingFields = response === undefined ? acceptFields : ["connect-content-encoding", response.name];
    this.#headerFields = ["content-type", contentTypeOf(format), ...encodingFields];
    this.responseHeader = new LazyHeaders(this.#headerFields);
  }

  announcedBytes(firstPiece: Uint8Array): number {
    return envelopeBytes(firstPiece);
  }

  readMessage(body: Uint8Array): Message | Promise<Message> {
    return readEnvelopedMessage(body, this.#codec, this.#encodings.request, this.#procedure.options.readMaxBytes);
  }

  readMessages(): AsyncIterable<Message> {
    const { readMaxBytes } = this.#procedure.options;
    return readEnvelopedMessages(this.#exchange.streamBody(), this.#codec, this.#encodings.request, readMaxBytes);
  }

  encode(message: Message): Uint8Array | Promise<Uint8Array> {
    return writeEnvelopedMessage(message, this.#codec, this.#encodings.response, this.#procedure.options);
  }

  headerToSend(header: Headers): HeaderFields {
    return fieldsToSend(header, this.#headerFields);
  }

  begin(header: HeaderFields): void {
    this.#exchange.begin(200, header);
  }

  write(bytes: Uint8Array): void | Promise<void> {
    return this.#exchange.write(bytes);
  }

  end(trailer: Headers, error: ConnectError | undefined): void {
    // The body ends right after this, whether or not the client reads it.
    void this.write(endOfStream(trailer, error))?.catch(() => undefined);
    this.#exchange.end();
  }

  answer(header: HeaderFields, bytes: Uint8Array, trailer: Headers, error: ConnectError | undefined): void {
    const body = concatBytes([bytes, endOfStream(trailer, error)]);
    this.#exchange.answer(200, header, body);
  }
}

/**
 * Answers a Connect stream that never became a call: status 200, with the error in the message that ends the stream,
 * the only place where clients look for it (Connect protocol, "Streaming-Response").
 */
export function refuseConnectStream(exchange: Exchange, format: "binary" | "json", error: ConnectError): void {
  exchange.answer(200, ["content-type", contentTypeOf(format)], endOfStream(new Headers(), error));
}

function contentTypeOf(format: "binary" | "json"): string {
  return `application/connect+${format === "binary" ? "proto" : "json"}`;
}

function endOfStream(trailer: Headers, error: ConnectError | undefined): Uint8Array {
  return writeEnvelope(endStreamFlag, toUtf8(JSON.stringify(endStreamToJson(trailer, error, undefined))));
}
