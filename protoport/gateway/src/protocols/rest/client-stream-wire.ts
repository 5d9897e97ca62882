import type { Message } from "@bufbuild/protobuf";
import type { ConnectError } from "@connectrpc/connect";
import { problem } from "../../protobuf/index.ts";
import { type HeaderFields, noBytes } from "../../http/index.ts";
import type { StreamTraits, StreamWire } from "../protocol.ts";
import { RestUnaryWire } from "./unary-wire.ts";

/** The wire for a client-streaming call through a `google.api.http` rule. The response has one message. */
export class RestClientStreamWire extends RestUnaryWire implements StreamWire {
  readonly traits: StreamTraits = { heartbeat: undefined, reportsErrorAtEnd: false, sendsHeaderEarly: false };
  readonly earlyEnd = undefined;
  #header: Headers = this.responseHeader;
  #response: Message | undefined;

  /** Keeps the message, which becomes the response when the handler returns. */
  encode(message: Message): Uint8Array {
    this.#response = message;
    return noBytes;
  }

  headerToSend(header: Headers): HeaderFields {
    this.#header = header;
    return noFields;
  }

  readonly begin: () => never = refuseStreaming;
  readonly send: () => never = refuseStreaming;
  readonly end: () => never = refuseStreaming;

  respond(
    _header: HeaderFields,
    _bytes: Uint8Array,
    trailer: Headers,
    error: ConnectError | undefined,
    mayCompress: boolean,
  ): void | Promise<void> {
    if (error !== undefined) return this.writeError(error, mayCompress);
    if (this.#response === undefined)
      return this.writeError(problem("ERR_RESPONSE_FAILED", "internal error"), mayCompress);
    return this.write(this.#response, this.#header, trailer);
  }
}

const noFields: HeaderFields = [];

function refuseStreaming(): never {
  throw new TypeError("client-streaming calls get a single response");
}
