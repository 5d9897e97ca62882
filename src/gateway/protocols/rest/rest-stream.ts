import type { Message } from "@bufbuild/protobuf";
import type { ConnectError } from "@connectrpc/connect";
import { type Exchange, type HeaderFields, statusesWithoutBody } from "../../carriers/index.ts";
import type { ErrorRecordWriter } from "../../rest/index.ts";
import type { RequestMessages, StreamProtocol } from "../call-protocol.ts";
import type { StreamProcedure } from "../procedure.ts";
import { chosenStatus, toRestHeader } from "./response-header.ts";
import { readableCodings, readRestMessages } from "./read-rest-messages.ts";
import { type RestSelection, RestUnary } from "./rest-unary.ts";

/** A streaming RPC that a REST request asks for. */
export interface RestStreamTarget extends RestSelection {
  readonly kind: "rest-stream";
  readonly protocol: "rest";
  readonly procedure: StreamProcedure;
}

/**
 * A call made through its `google.api.http` rule that is answered with a stream: what streams of messages and of bytes
 * have in common. The client sends one message or a stream.
 */
export abstract class RestStream extends RestUnary implements StreamProtocol {
  /** Final once the header is. */
  protected httpStatus = 200;

  constructor(exchange: Exchange, target: RestStreamTarget, writeErrorRecord: ErrorRecordWriter) {
    super(exchange, target, writeErrorRecord, readableCodings(target));
    const { takesStream } = target.binding;
    if (takesStream)
      this.problem ??= target.binding.bodyProblem(exchange.common.contentType, exchange.body === undefined);
  }

  get headOnly(): boolean {
    return this.exchange.httpMethod === "HEAD" || statusesWithoutBody.has(this.httpStatus);
  }

  readMessages(): RequestMessages {
    return readRestMessages(this.exchange, this.target, this.requestCoding);
  }

  headerToSend(header: Headers): HeaderFields {
    this.httpStatus = chosenStatus(header, false) ?? 200;
    const metadata = toRestHeader(header);
    return statusesWithoutBody.has(this.httpStatus) ? metadata : [...this.contentFields(header), ...metadata];
  }

  /** Returns the fields that describe the body. */
  protected abstract contentFields(header: Headers): HeaderFields;
  abstract encode(message: Message): Uint8Array;
  abstract begin(header: HeaderFields): void;
  abstract write(bytes: Uint8Array): void | Promise<void>;
  abstract end(trailer: Headers, error: ConnectError | undefined): void | Promise<void>;
  abstract answer(
    header: HeaderFields,
    bytes: Uint8Array,
    trailer: Headers,
    error: ConnectError | undefined,
  ): void | Promise<void>;
}
