import type { Message } from "@bufbuild/protobuf";
import type { ConnectError } from "@connectrpc/connect";
import { concatBytes, type Exchange, type HeaderFields, toUtf8 } from "../../carriers/index.ts";
import { type ErrorWriter, type StreamForm, streamFormsOf } from "../../rest/index.ts";
import { encodesPieces, type PieceEncoder, type StreamCompression } from "../compression.ts";
import { negotiateContentCoding, parseWeights } from "../content-coding.ts";
import type { StreamProcedure } from "../procedure.ts";
import type { StreamProtocol } from "../call-protocol.ts";
import { toRestFields } from "./response-header.ts";
import { readableCodings, readRestMessages } from "./rest-messages.ts";
import { type RestSelection, RestUnary } from "./rest-unary.ts";

/** A streaming RPC that a REST request asks for. */
export interface RestStreamTarget extends RestSelection {
  readonly kind: "rest-stream";
  readonly protocol: "rest";
  readonly procedure: StreamProcedure;
}

/** A stream of answers called through its `google.api.http` rule, whose client sends one message or a stream. */
export class RestStream extends RestUnary implements StreamProtocol {
  readonly heartbeat: Uint8Array | undefined;
  readonly headOnly: boolean;
  readonly #form: StreamForm;
  #messages = 0;
  #encoder: PieceEncoder | undefined;
  #contentType: string | undefined;

  constructor(exchange: Exchange, target: RestStreamTarget, writeErrorRecord: ErrorWriter) {
    super(exchange, target, writeErrorRecord, readableCodings(target));
    this.#form = negotiateForm(exchange.get("accept"), streamFormsOf(target.binding.streamInResults));
    this.headOnly = exchange.httpMethod === "HEAD";
    const takesStream = target.procedure.method.methodKind === "bidi_streaming";
    if (takesStream && !exchange.bodyEmpty) this.problem ??= target.binding.bodyProblem(exchange.common.contentType);
    const { heartbeat } = this.#form;
    this.heartbeat = heartbeat === undefined || this.headOnly || this.#isRaw ? undefined : toUtf8(heartbeat);
  }

  readMessages(): AsyncIterable<Message> {
    return readRestMessages(this.exchange, this.target, this.requestCoding);
  }

  encode(message: Message): Uint8Array {
    const raw = this.target.binding.toRaw?.(message);
    if (raw !== undefined) {
      // The content type of the first message applies to all.
      this.#contentType ??= raw.contentType;
      this.#messages++;
      return raw.body;
    }
    return toUtf8(this.#form.message(this.target.binding.toJson(message), this.#messages++));
  }

  headerToSend(header: Headers): HeaderFields {
    // RFC 9110 §12.5.5: caches must know that the form depends on what the client accepts.
    const { contentType, fields } = this.#form;
    const own = this.#isRaw
      ? ["content-type", this.#contentType ?? "application/octet-stream"]
      : ["content-type", contentType, ...fields, "vary", "accept"];
    return [...own, ...toRestFields(header)];
  }

  begin(header: HeaderFields): void {
    if (this.#isRaw) return this.exchange.begin(200, header);
    const varying = [...header, "vary", "accept-encoding"];
    const coding = this.#negotiateCoding();
    if (coding === undefined) return this.exchange.begin(200, varying);
    this.#encoder = coding.openEncoder();
    this.exchange.begin(200, [...varying, "content-encoding", coding.name]);
  }

  write(bytes: Uint8Array): void | Promise<void> {
    if (this.#encoder === undefined) return this.exchange.write(bytes);
    return this.#encoder.write(bytes).then((encoded) => this.exchange.write(encoded));
  }

  end(_trailer: Headers, error: ConnectError | undefined): void {
    // Raw bytes have no place for an error: the reset tells the client that they are incomplete.
    if (this.#isRaw && error !== undefined) return this.exchange.reset();
    const end = this.#end(error);
    if (this.#encoder === undefined) return this.#finish(end);
    this.#encoder.end(end).then(
      (encoded) => this.#finish(encoded),
      () => this.exchange.reset(),
    );
  }

  release(): void {
    this.#encoder?.close();
  }

  #finish(end: Uint8Array): void {
    // The body ends right after this, whether or not the client reads it.
    if (end.byteLength > 0) void this.exchange.write(end)?.catch(() => undefined);
    this.exchange.end();
  }

  answer(header: HeaderFields, bytes: Uint8Array, _trailer: Headers, error: ConnectError | undefined): void {
    if (this.headOnly && error === undefined) return this.exchange.answer(200, header);
    if (this.#isRaw && error !== undefined && this.#messages > 0) return this.exchange.reset();
    if (error === undefined || this.#messages > 0) {
      const body = concatBytes([bytes, this.#end(error)]);
      if (this.#isRaw) return this.exchange.answer(200, header, body);
      // Compressing bytes that are in memory does not fail; if it did, the client must not wait.
      return void this.answerEncoded(200, header, body)?.catch(() => this.exchange.reset());
    }
    const { httpStatus, fields, body } = this.errorAnswer(error);
    this.exchange.answer(httpStatus, fields, body);
  }

  /** The length of the answer is not known, so it is compressed however short its first messages are. */
  #negotiateCoding(): StreamCompression | undefined {
    const available = this.target.procedure.options.acceptCompression.filter(encodesPieces);
    const names = available.map(({ name }) => name);
    const chosen = negotiateContentCoding(this.exchange.get("accept-encoding"), names);
    return available.find(({ name }) => name === chosen);
  }

  get #isRaw(): boolean {
    return this.target.binding.toRaw !== undefined;
  }

  #end(error: ConnectError | undefined): Uint8Array {
    if (this.#isRaw) return new Uint8Array(0);
    return toUtf8(this.#form.end(this.#messages, error === undefined ? undefined : this.#errorJson(error)));
  }

  /** Returns the error record, which JSON.stringify has written on one line. */
  #errorJson(error: ConnectError): string {
    return new TextDecoder().decode(this.errorAnswer(error).body);
  }
}

/**
 * Chooses the form of a stream by `Accept` (RFC 9110 §12.5.1): the one with the highest weight, or of equal ones the
 * first; the first of all if the client accepts none.
 *
 * @param accept - the value of the field, `null` when it was not sent
 */
function negotiateForm(accept: string | null, [first, ...others]: readonly [StreamForm, ...StreamForm[]]): StreamForm {
  if (accept === null || accept === "") return first;
  const weights = parseWeights(accept.replaceAll(parameter, ""));
  let chosen = first;
  let highest = weightOf(first.contentType, weights);
  for (const form of others) {
    const weight = weightOf(form.contentType, weights);
    if (weight > highest) {
      chosen = form;
      highest = weight;
    }
  }
  return chosen;
}

// The parameters of a media type are ignored: there is one form for each type.
const parameter = /;(?![\t ]*q=)[^;,]*/gi;

/** Returns the weight of the most specific range that includes the type. */
function weightOf(contentType: string, weights: ReadonlyMap<string, number>): number {
  const [type = ""] = contentType.split("/");
  return weights.get(contentType) ?? weights.get(`${type}/*`) ?? weights.get("*/*") ?? 0;
}
