import type { Message } from "@bufbuild/protobuf";
import type { ConnectError } from "@connectrpc/connect";
import { type HeaderFields, noBytes } from "../../exchange/index.ts";
import type { StreamWire } from "../protocol.ts";
import { RestStreamWire } from "./stream-wire.ts";

/** A stream of bytes, in google.api.HttpBody messages. Once some are sent, only a reset can report an error. */
export class RestByteStreamWire extends RestStreamWire implements StreamWire {
  #contentType: string | undefined;
  /** The length that the handler has announced, and the field that says so. */
  #length: number | undefined;
  #lengthField: HeaderFields = none;
  #bytes = 0;

  encode(message: Message): Uint8Array {
    const { contentType = "application/octet-stream", body = noBytes } = this.selection.binding.encode(message);
    // The content type of the first message applies to all.
    this.#contentType ??= contentType;
    this.#bytes += body.byteLength;
    this.#refuseExcess();
    return body;
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
    // The first message, which was encoded before the length was known.
    this.#refuseExcess();
    this.exchange.begin(this.httpStatus, [...header, ...this.#lengthField]);
  }

  write(bytes: Uint8Array): void | Promise<void> {
    return this.exchange.write(bytes);
  }

  end(_trailer: Headers, error: ConnectError | undefined): void {
    if (error !== undefined) return this.exchange.reset();
    this.#refuseShortage();
    this.exchange.end();
  }

  answer(
    header: HeaderFields,
    bytes: Uint8Array,
    _trailer: Headers,
    error: ConnectError | undefined,
  ): void | Promise<void> {
    if (error !== undefined) return this.writeError(error);
    this.#refuseExcess();
    if (this.headOnly) return this.exchange.respond(this.httpStatus, [...header, ...this.#lengthField]);
    this.#refuseShortage();
    this.exchange.respond(this.httpStatus, header, bytes);
  }

  /** Keeps back bytes beyond the announced length, which a client of HTTP/1.1 takes for the next answer. */
  #refuseExcess(): void {
    if (this.#length !== undefined && this.#bytes > this.#length) throw wrongLength();
  }

  #refuseShortage(): void {
    if (this.#length !== undefined && this.#bytes < this.#length) throw wrongLength();
  }
}

const none: HeaderFields = [];
// Far beyond any file, and exact as a number.
const contentLength = /^[0-9]{1,15}$/;

function wrongLength(): Error {
  return new Error("the length of the response does not match the handler's Content-Length");
}
