import { type HeaderFields, statusesWithoutBody } from "../../exchange/index.ts";
import { chosenStatus } from "./response-header.ts";
import { RestUnaryWire } from "./unary-wire.ts";

/**
 * A call made through its `google.api.http` rule that is answered with a stream: what streams of messages and of bytes
 * have in common. The client sends one message or a stream.
 */
export abstract class RestStreamWire extends RestUnaryWire {
  readonly endHasError = false;
  /** Final once the header is. */
  protected httpStatus = 200;

  get headOnly(): boolean {
    return this.exchange.httpMethod === "HEAD" || statusesWithoutBody.has(this.httpStatus);
  }

  headerToSend(header: Headers): HeaderFields {
    this.httpStatus = chosenStatus(header, false) ?? 200;
    const metadata = this.metadataOf(header);
    return statusesWithoutBody.has(this.httpStatus) ? metadata : [...this.contentFields(header), ...metadata];
  }

  /** Returns the fields that describe the body. */
  protected abstract contentFields(header: Headers): HeaderFields;
}
