import type { ConnectError } from "@connectrpc/connect";
import { setTrailerStatus } from "@connectrpc/connect/protocol-grpc";
import { type Exchange, type HeaderFields, prepareHeaderFields } from "../carriers/index.ts";
import { refusalContentType, type Spelling, spellingsOf } from "./content-type.ts";
import { envelopePrefix } from "./envelope.ts";
import { EnvelopedCall, readGrpcHeader } from "./enveloped-call.ts";
import { appendOwnMetadata, withoutMetadata } from "./error-metadata.ts";
import { headerFieldsToSend, LazyHeaders } from "./lazy-headers.ts";
import type { Procedure, ResponseParts } from "./procedure.ts";
import type { Protocol } from "./protocol.ts";
import { createRpcTarget } from "./target.ts";

const baseType = "application/grpc";

/** gRPC over HTTP/2 (https://github.com/grpc/grpc/blob/master/doc/PROTOCOL-HTTP2.md). */
export const grpc: Protocol = {
  name: "grpc",
  hasHttpStatus: false,
  targetsOf(procedure) {
    if (procedure.options.grpc === false) return [];
    return spellingsOf(baseType, procedure.codecs).map(([contentType, spelling]) => {
      return [contentType, createRpcTarget(grpc, procedure, (e) => new GrpcCall(e, procedure, spelling))];
    });
  },
  claims({ common: { contentType } }) {
    return contentType?.toLowerCase().startsWith(baseType) === true;
  },
  /** In the form that is called `Trailers-Only`. */
  refuse(exchange, { error }) {
    const trailer = new LazyHeaders(["content-type", refusalContentType(exchange.common.contentType, [baseType])]);
    setStatus(trailer, error);
    exchange.answer(200, trailer.fields);
  },
};

/** A call of gRPC over HTTP/2, and over HTTP/1.1 for clients that read its trailers. */
class GrpcCall extends EnvelopedCall {
  readonly responseTrailer: LazyHeaders = new LazyHeaders(statusOk);

  constructor(exchange: Exchange, procedure: Procedure, spelling: Spelling) {
    super(exchange, procedure, spelling, readGrpcHeader(exchange, procedure));
  }

  override writeMessage({ message, header, trailer }: ResponseParts): void | Promise<void> {
    const answer = (body: Uint8Array): void =>
      this.answer(headerFieldsToSend(header, this.headerFields), body, trailer, undefined);
    const received = this.envelopeOf(message);
    if (received !== undefined) return answer(received);
    const bytes = this.codec.encode(message);
    const isUncopied = this.encodings.response === undefined && bytes.byteLength >= uncopiedBytesMin;
    if (isUncopied) return this.#answerUncopied(header, bytes, trailer);
    const envelope = this.envelop(bytes);
    return envelope instanceof Promise ? envelope.then(answer) : answer(envelope);
  }

  #answerUncopied(header: Headers, message: Uint8Array, trailer: Headers): void {
    const { exchange } = this;
    const trailerFields = headerFieldsToSend(trailer, statusOk);
    exchange.begin(200, headerFieldsToSend(header, this.headerFields));
    // The body ends right after these, whether or not the client reads them.
    for (const piece of [envelopePrefix(message.byteLength), message]) void exchange.write(piece);
    exchange.end(trailerFields);
  }

  end(trailer: Headers, error: ConnectError | undefined): void {
    if (error !== undefined) setStatus(trailer, error);
    this.exchange.end(headerFieldsToSend(trailer, statusOk));
  }

  answer(header: HeaderFields, bytes: Uint8Array, trailer: Headers, error: ConnectError | undefined): void {
    if (error !== undefined) setStatus(trailer, error);
    const trailerFields = headerFieldsToSend(trailer, statusOk);
    if (error === undefined || bytes.byteLength > 0) return this.exchange.answer(200, header, bytes, trailerFields);
    // "Trailers-Only": one header section is enough unless the handler has set header fields.
    if (this.responseHeader.pristine) this.exchange.answer(200, [...header, ...trailerFields]);
    else this.exchange.answer(200, header, undefined, trailerFields);
  }
}

/** Bytes from which a message is sent as it is, after its prefix, instead of being copied into an envelope. */
// 64 KiB: below, a piece and its frame cost as much as the copy.
const uncopiedBytesMin = 64 * 1024;

/** The trailer of a gRPC answer that succeeded, unless the handler adds to it. */
export const statusOk: HeaderFields = prepareHeaderFields("grpc-status", "0");

// delay-seconds (RFC 9110 §10.2.3). Five digits are more than a day, longer than any client waits.
const delaySeconds = /^\d{1,5}$/;

/**
 * Sets the status of a gRPC answer in its trailer, with the metadata of the error.
 *
 * A `retry-after` is repeated as `grpc-retry-pushback-ms` (gRFC A6), the only one of the two that gRPC clients heed.
 */
export function setStatus(trailer: Headers, error: ConnectError): void {
  appendOwnMetadata(trailer, error);
  // Connect's function wants an error without metadata, which takes a fifth of what a refusal costs in all.
  if (error.details.length > 0) setTrailerStatus(trailer, withoutMetadata(error));
  else trailer.set("grpc-status", String(error.code));
  // Not encodeURIComponent, as Connect's has it: grpc-js shows its callers "%3A" and "%2C" as they come.
  trailer.set("grpc-message", encodeURI(error.rawMessage));
  const retryAfter = error.metadata.get("retry-after");
  if (retryAfter === null || !delaySeconds.test(retryAfter) || trailer.has(pushback)) return;
  trailer.set(pushback, String(Number(retryAfter) * 1000));
}

const pushback = "grpc-retry-pushback-ms";
