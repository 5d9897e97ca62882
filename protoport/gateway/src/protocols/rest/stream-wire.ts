import { type HeaderFields, statusesWithoutBody } from "../../http/index.ts";
import { statusOfHandler } from "./response-header.ts";
import { RestUnaryWire } from "./unary-wire.ts";

/** The base class for message streams and byte streams in responses through `google.api.http` rules. */
export abstract class RestStreamWire extends RestUnaryWire {
  /** The response's status, which {@link headerToSend} sets. */
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
