import type { Message } from "@bufbuild/protobuf";
import type { ConnectError } from "@connectrpc/connect";
import { concatBytes, type Exchange, type HeaderFields, toUtf8 } from "../../http/index.ts";
import type { StreamForm } from "./rules/index.ts";
import { encodesPieces, type PieceEncoder } from "../envelope/compression.ts";
import { negotiateCoding, negotiateType } from "../shared/negotiation.ts";
import type { StreamTraits, StreamWire } from "../protocol.ts";
import { RestStreamWire } from "./stream-wire.ts";
import type { MatchedRule } from "./matched-rule.ts";

/** The wire for a JSON message stream, which consists of lines, one array, or Server-Sent Events. */
export class RestMessageStreamWire extends RestStreamWire implements StreamWire {
  readonly traits: StreamTraits;
  readonly #form: StreamForm;
  #messages = 0;
  #encoder: PieceEncoder | undefined;

  constructor(exchange: Exchange, matched: MatchedRule) {
    super(exchange, matched);
    this.#form = negotiateType(exchange.get("accept"), matched.rule.binding.streamForms);
    this.traits = { heartbeat: this.#form.heartbeat, reportsErrorAtEnd: false, sendsHeaderEarly: true };
  }

  encode(message: Message): Uint8Array {
    const json = this.rule.binding.toJson(message);
    return toUtf8(this.#form.message(this.select === undefined ? json : this.select(json), this.#messages++));
  }

  contentFields(): HeaderFields {
    // The format depends on the client's Accept field (RFC 9110 §12.5.5).
    const { contentType, fields } = this.#form;
    return ["content-type", contentType, ...fields, "vary", "accept", ...this.varyFields()];
  }

  begin(header: HeaderFields): void {
    const varying = [...header, "vary", "accept-encoding"];
    // Short first messages are compressed too, because the response length is not known yet.
    const codings = this.rule.rpc.options.acceptCompression.filter(encodesPieces);
    const coding = negotiateCoding(this.exchange.get("accept-encoding"), codings);
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
    if (this.earlyEnd === "complete") return this.exchange.respond(this.httpStatus, header);
    const body = concatBytes([bytes, this.#end(error)]);
    return this.respondEncoded(this.httpStatus, header, body, mayCompress);
  }

  #end(error: ConnectError | undefined): Uint8Array {
    return toUtf8(this.#form.end(this.#messages, error === undefined ? undefined : this.#errorJson(error)));
  }

  /** Returns the error record as JSON. The record is a single line because JSON.stringify writes no line feeds. */
  #errorJson(error: ConnectError): string {
    return new TextDecoder().decode(this.errorResponse(error).body);
  }
}
