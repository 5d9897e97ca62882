import type { Message } from "@bufbuild/protobuf";
import type { ConnectError } from "@connectrpc/connect";
import {
  concatBytes,
  type Exchange,
  type HeaderFields,
  noBytes,
  statusesWithoutBody,
  toUtf8,
} from "../../http/index.ts";
import { encodesPieces, type PieceEncoder } from "../envelope/compression.ts";
import type { StreamTraits, StreamWire } from "../protocol.ts";
import { negotiateCoding, negotiateType, varyByCoding } from "../shared/negotiation.ts";
import type { MatchedRule } from "./representation.ts";
import { statusOfHandler, withSecurityFields } from "./response-header.ts";
import type { StreamForm } from "./rules/index.ts";
import { RestUnaryWire } from "./unary-wire.ts";

/** The base class for message streams and byte streams in responses through `google.api.http` rules. */
abstract class RestStreamWire extends RestUnaryWire {
  /** The response's status, which {@link headerToSend} sets. */
  protected httpStatus = 200;

  get earlyEnd(): "complete" | undefined {
    return this.exchange.httpMethod === "HEAD" || statusesWithoutBody.has(this.httpStatus) ? "complete" : undefined;
  }

  headerToSend(header: Headers): HeaderFields {
    this.httpStatus = statusOfHandler(header, false) ?? 200;
    const metadata = this.metadataOf(header);
    if (statusesWithoutBody.has(this.httpStatus)) return this.bodilessFields(this.httpStatus, metadata);
    return [...this.contentFields(header), ...metadata];
  }

  /** Returns the fields that describe the body. */
  protected abstract contentFields(header: Headers): HeaderFields;
}

/** The wire for a stream of google.api.HttpBody messages. After bytes are sent, only a reset can report an error. */
export class RestByteStreamWire extends RestStreamWire implements StreamWire {
  readonly traits: StreamTraits = { heartbeat: undefined, reportsErrorAtEnd: false, sendsHeaderEarly: false };
  #contentType: string | undefined;
  /** The `Content-Length` set by the handler, as a number. {@link #lengthField} is the header field. */
  #length: number | undefined;
  #lengthField: HeaderFields = noFields;
  #bytes = 0;

  encode(message: Message): Uint8Array {
    const { contentType = "application/octet-stream", body = noBytes } = this.rule.binding.encode(message);
    // The first message's content type applies to the whole response.
    this.#contentType ??= contentType;
    this.#bytes += body.byteLength;
    this.#checkNotLonger();
    return body;
  }

  override headerToSend(header: Headers): HeaderFields {
    return withSecurityFields(super.headerToSend(header));
  }

  contentFields(header: Headers): HeaderFields {
    const length = header.get("content-length");
    if (length !== null && contentLength.test(length)) {
      this.#length = Number(length);
      this.#lengthField = ["content-length", length];
    }
    return ["content-type", this.#contentType ?? "application/octet-stream"];
  }

  begin(header: HeaderFields): void {
    // Checked again, because the first message was encoded before the handler's `Content-Length` was known.
    this.#checkNotLonger();
    this.exchange.begin(this.httpStatus, [...header, ...this.#lengthField]);
  }

  send(bytes: Uint8Array): void | Promise<void> {
    return this.exchange.write(bytes);
  }

  end(_trailer: Headers, error: ConnectError | undefined): void {
    if (error !== undefined) return this.exchange.reset();
    this.#checkNotShorter();
    this.exchange.end();
  }

  respond(
    header: HeaderFields,
    bytes: Uint8Array,
    _trailer: Headers,
    error: ConnectError | undefined,
    mayCompress: boolean,
  ): void | Promise<void> {
    if (error !== undefined) return this.writeError(error, mayCompress);
    this.#checkNotLonger();
    if (this.earlyEnd === "complete") return this.exchange.respond(this.httpStatus, [...header, ...this.#lengthField]);
    this.#checkNotShorter();
    this.exchange.respond(this.httpStatus, header, bytes);
  }

  /** Rejects bytes beyond the announced length, which an HTTP/1.1 client would parse as the next response. */
  #checkNotLonger(): void {
    if (this.#length !== undefined && this.#bytes > this.#length) throw contentLengthError();
  }

  #checkNotShorter(): void {
    if (this.#length !== undefined && this.#bytes < this.#length) throw contentLengthError();
  }
}

const noFields: HeaderFields = [];
// Matches a length of up to 15 digits, which is larger than any file and still exact as a JavaScript number.
const contentLength = /^[0-9]{1,15}$/;

function contentLengthError(): Error {
  return new Error("the length of the response does not match the handler's Content-Length");
}

/** The wire for a JSON message stream, which consists of lines, one array, or Server-Sent Events. */
export class RestMessageStreamWire extends RestStreamWire implements StreamWire {
  readonly traits: StreamTraits;
  readonly #form: StreamForm;
  #messages = 0;
  #encoder: PieceEncoder | undefined;

  constructor(exchange: Exchange, matched: MatchedRule) {
    super(exchange, matched);
    this.#form = negotiateType(exchange.get("accept"), matched.rule.binding.options.streamForms);
    this.traits = { heartbeat: this.#form.heartbeat, reportsErrorAtEnd: false, sendsHeaderEarly: true };
  }

  encode(message: Message): Uint8Array {
    const json = this.rule.binding.toJson(message);
    return toUtf8(this.#form.message(this.select === undefined ? json : this.select(json), this.#messages++));
  }

  contentFields(): HeaderFields {
    // The format depends on the client's Accept field (RFC 9110 §12.5.5).
    const { contentType, fields } = this.#form;
    return ["content-type", contentType, ...fields, ...this.varyFields()];
  }

  protected override varyFields(): HeaderFields {
    return ["vary", "accept", ...super.varyFields()];
  }

  begin(header: HeaderFields): void {
    // Short first messages are compressed too, because the response length is not known yet.
    const codings = this.rule.rpc.options.acceptCompression.filter(encodesPieces);
    const coding = negotiateCoding(this.exchange.get("accept-encoding"), codings);
    const varying = varyByCoding(header, coding);
    if (coding === undefined) return this.exchange.begin(this.httpStatus, varying);
    this.#encoder = coding.openEncoder();
    this.exchange.begin(this.httpStatus, [...varying, "content-encoding", coding.name]);
  }

  send(bytes: Uint8Array): void | Promise<void> {
    if (this.#encoder === undefined) return this.exchange.write(bytes);
    return this.#encoder.write(bytes).then((encoded) => this.exchange.write(encoded));
  }

  end(_trailer: Headers, error: ConnectError | undefined): void | Promise<void> {
    const end = this.#end(error);
    if (this.#encoder === undefined) return this.#finish(end);
    return this.#encoder.end(end).then((encoded) => this.#finish(encoded));
  }

  override release(): void {
    this.#encoder?.close();
  }

  #finish(end: Uint8Array): void {
    // The end is the response's last write, so backpressure can be ignored.
    if (end.byteLength > 0) void this.exchange.write(end);
    this.exchange.end();
  }

  respond(
    header: HeaderFields,
    bytes: Uint8Array,
    _trailer: Headers,
    error: ConnectError | undefined,
    mayCompress: boolean,
  ): void | Promise<void> {
    // An error before the first message gets the same response as in a unary call.
    if (error !== undefined && bytes.byteLength === 0) return this.writeError(error, mayCompress);
    if (statusesWithoutBody.has(this.httpStatus)) return this.exchange.respond(this.httpStatus, header);
    if (this.earlyEnd === "complete")
      return this.exchange.respond(this.httpStatus, varyByCoding(header, this.chooseCoding()));
    const body = concatBytes([bytes, this.#end(error)]);
    return this.respondEncoded(this.httpStatus, header, body, mayCompress);
  }

  #end(error: ConnectError | undefined): Uint8Array {
    // The error record is a single line because JSON.stringify writes no line feeds.
    const record = error === undefined ? undefined : new TextDecoder().decode(this.errorResponse(error).body);
    return toUtf8(this.#form.end(this.#messages, record));
  }
}
