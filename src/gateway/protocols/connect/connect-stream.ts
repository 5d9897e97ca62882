import type { ConnectError } from "@connectrpc/connect";
import { endStreamFlag, endStreamToJson, parseTimeout } from "@connectrpc/connect/protocol-connect";
import { negotiateEncodings, shortened } from "../call-header.ts";
import { writeEnvelope } from "../envelope.ts";
import { EnvelopedCall } from "../enveloped-call.ts";
import { concatBytes, type Exchange, type HeaderFields, toUtf8 } from "../../carriers/index.ts";
import { LazyHeaders } from "../lazy-headers.ts";
import type { Procedure } from "../procedure.ts";
import type { StreamProtocol } from "../call-protocol.ts";
import { versionProblem } from "./connect-unary.ts";

/** A streaming call of the Connect protocol. Its body ends with an envelope for trailer and error. */
export class ConnectStream extends EnvelopedCall implements StreamProtocol {
  readonly protocol = "connect";
  readonly responseTrailer: LazyHeaders = new LazyHeaders([]);

  constructor(exchange: Exchange, procedure: Procedure, format: "binary" | "json") {
    const { acceptCompression, maxTimeoutMs } = procedure.options;
    const sent = exchange.get("connect-content-encoding");
    const accepted = exchange.get("connect-accept-encoding");
    const encodings = negotiateEncodings(acceptCompression, sent, accepted, "connect-accept-encoding");
    const { timeoutMs, error } = parseTimeout(shortened(exchange.common.connectTimeoutMs), maxTimeoutMs);
    const problem = versionProblem(exchange, procedure, undefined) ?? encodings.problem ?? error;
    const { response, acceptFields } = encodings;
    const encodingFields = response === undefined ? acceptFields : ["connect-content-encoding", response.name];
    const headerFields = ["content-type", contentTypeOf(format), ...encodingFields];
    super(exchange, procedure, format, { encodings, timeoutMs, problem, headerFields });
  }

  end(trailer: Headers, error: ConnectError | undefined): void {
    // The body ends right after this, whether or not the client reads it.
    void this.write(endOfStream(trailer, error))?.catch(() => undefined);
    this.exchange.end();
  }

  answer(header: HeaderFields, bytes: Uint8Array, trailer: Headers, error: ConnectError | undefined): void {
    const body = concatBytes([bytes, endOfStream(trailer, error)]);
    this.exchange.answer(200, header, body);
  }
}

/**
 * Answers a Connect stream that never became a call: status 200, with the error in the message that ends the stream,
 * the only place where clients look for it (Connect protocol, "Streaming-Response").
 */
export function refuseConnectStream(exchange: Exchange, format: "binary" | "json", error: ConnectError): void {
  exchange.answer(200, ["content-type", contentTypeOf(format)], endOfStream(new Headers(), error));
}

function contentTypeOf(format: "binary" | "json"): string {
  return `application/connect+${format === "binary" ? "proto" : "json"}`;
}

function endOfStream(trailer: Headers, error: ConnectError | undefined): Uint8Array {
  return writeEnvelope(endStreamFlag, toUtf8(JSON.stringify(endStreamToJson(trailer, error, undefined))));
}
