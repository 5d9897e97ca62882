import { type HeaderFields, statusesWithoutBody } from "@plantstore/http";
import { statusOfHandler } from "./response-header.ts";
import { RestUnaryWire } from "./unary-wire.ts";

/**
 * A call with a response stream made through its `google.api.http` rule: what message streams and byte streams
 * share. The client sends one message or a stream.
 */
export abstract class RestStreamWire extends RestUnaryWire {
  readonly reportsErrorAtEnd = false;
  /** Final once {@link headerToSend} was called. */
  protected httpStatus = 200;

  get earlyEnd(): "complete" | undefined {
    return this.exchange.httpMethod === "HEAD" || statusesWithoutBody.has(this.httpStatus) ? "complete" : undefined;
  }

  headerToSend(header: Headers): HeaderFields {
    this.httpStatus = statusOfHandler(header, false) ?? 200;
    const metadata = this.metadataOf(header);
    return statusesWithoutBody.has(this.httpStatus) ? metadata : [...this.contentFields(header), ...metadata];
  }

  /** Returns the fields that describe the body. */
  protected abstract contentFields(header: Headers): HeaderFields;
}
