import type { Message } from "@bufbuild/protobuf";
import type { ConnectError } from "@connectrpc/connect";
import { type HeaderFields, noBytes } from "../../http/index.ts";
import type { StreamTraits, StreamWire } from "../protocol.ts";
import { withSecurityFields } from "./security-fields.ts";
import { RestStreamWire } from "./stream-wire.ts";

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
