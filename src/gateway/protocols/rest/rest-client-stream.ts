import type { Message } from "@bufbuild/protobuf";
import { Code, ConnectError } from "@connectrpc/connect";
import type { Exchange, HeaderFields } from "../../carriers/index.ts";
import type { ErrorRecordWriter } from "../../rest/index.ts";
import type { RequestMessages, StreamProtocol } from "../call-protocol.ts";
import { readableCodings, readRestMessages } from "./read-rest-messages.ts";
import type { RestStreamTarget } from "./rest-stream.ts";
import { RestUnary } from "./rest-unary.ts";

/** A client-streaming call made through its `google.api.http` rule. Answered with one message, like a unary call. */
export class RestClientStream extends RestUnary implements StreamProtocol {
  #header: Headers = this.responseHeader;
  #response: Message | undefined;

  constructor(exchange: Exchange, target: RestStreamTarget, writeErrorRecord: ErrorRecordWriter) {
    super(exchange, target, writeErrorRecord, readableCodings(target));
    this.problem ??= target.binding.bodyProblem(exchange.common.contentType, exchange.body === undefined);
  }

  readMessages(): RequestMessages {
    return readRestMessages(this.exchange, this.target, this.requestCoding);
  }

  /** Keeps the message, which becomes the answer once the handler has ended. */
  encode(message: Message): Uint8Array {
    this.#response = message;
    return nothing;
  }

  headerToSend(header: Headers): HeaderFields {
    this.#header = header;
    return none;
  }

  begin(): never {
    throw oneAnswer();
  }

  write(): never {
    throw oneAnswer();
  }

  end(): never {
    throw oneAnswer();
  }

  answer(
    _header: HeaderFields,
    _bytes: Uint8Array,
    trailer: Headers,
    error: ConnectError | undefined,
  ): void | Promise<void> {
    if (error !== undefined) return this.writeError(error);
    if (this.#response === undefined) return this.writeError(new ConnectError("internal error", Code.Internal));
    return this.writeMessage({ message: this.#response, header: this.#header, trailer });
  }
}

const nothing = new Uint8Array(0);
const none: HeaderFields = [];

function oneAnswer(): TypeError {
  return new TypeError("a stream of a client is answered in one go");
}
