import type { Message } from "@bufbuild/protobuf";
import type { ConnectError } from "@connectrpc/connect";
import { problem } from "../../errors/index.ts";
import { type HeaderFields, noBytes } from "../../exchange/index.ts";
import type { StreamWire } from "../protocol.ts";
import { RestUnaryWire } from "./unary-wire.ts";

/** A client-streaming call made through its `google.api.http` rule. Answered with one message, like a unary call. */
export class RestClientStreamWire extends RestUnaryWire implements StreamWire {
  readonly endHasError = false;
  #header: Headers = this.responseHeader;
  #response: Message | undefined;

  /** Keeps the message, which becomes the answer once the handler has ended. */
  encode(message: Message): Uint8Array {
    this.#response = message;
    return noBytes;
  }

  headerToSend(header: Headers): HeaderFields {
    this.#header = header;
    return none;
  }

  readonly begin: () => never = oneAnswer;
  readonly write: () => never = oneAnswer;
  readonly end: () => never = oneAnswer;

  answer(
    _header: HeaderFields,
    _bytes: Uint8Array,
    trailer: Headers,
    error: ConnectError | undefined,
  ): void | Promise<void> {
    if (error !== undefined) return this.writeError(error);
    if (this.#response === undefined) return this.writeError(problem("ERR_ANSWER_FAILED", "internal error"));
    return this.writeMessage({ message: this.#response, header: this.#header, trailer });
  }
}

const none: HeaderFields = [];

function oneAnswer(): never {
  throw new TypeError("client-streaming calls get a single response");
}
