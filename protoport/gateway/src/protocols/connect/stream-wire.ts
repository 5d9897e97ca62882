import type { ConnectError } from "@connectrpc/connect";
import { endStreamFlag, endStreamToJson } from "@connectrpc/connect/protocol-connect";
import { concatBytes, type Exchange, type HeaderFields, toUtf8 } from "../../http/index.ts";
import type { CallFormat } from "../shared/content-type.ts";
import { writeEnvelope } from "../envelope/envelope.ts";
import { EnvelopedWire } from "../shared/enveloped-wire.ts";
import { appendCustomMetadata, withoutMetadata } from "../shared/error-metadata.ts";
import { headerFieldsToSend, LazyHeaders } from "../lazy-headers.ts";
import { negotiateEncodings } from "../shared/message-encodings.ts";
import type { Rpc } from "../rpc.ts";
import { readConnectTimeout } from "../shared/timeouts.ts";
import { versionProblem } from "./version.ts";

/** A streaming Connect call. The last envelope in the response body contains the trailer and the error. */
export class ConnectStreamWire extends EnvelopedWire {
  readonly responseTrailer: LazyHeaders = new LazyHeaders([]);

  constructor(exchange: Exchange, rpc: Rpc, format: CallFormat) {
    const { acceptCompression, maxTimeoutMs } = rpc.options;
    const contentEncoding = exchange.get("connect-content-encoding");
    const accepted = exchange.get("connect-accept-encoding");
    super(exchange, rpc, format, {
      encodings: negotiateEncodings(acceptCompression, contentEncoding, accepted, "connect-accept-encoding"),
      timeout: readConnectTimeout(exchange.get("connect-timeout-ms"), maxTimeoutMs),
      encodingName: "connect-content-encoding",
      problem: versionProblem(exchange, rpc, undefined),
    });
  }

  end(trailer: Headers, error: ConnectError | undefined): void {
    // The end of the stream is the response's last write, so backpressure can be ignored.
    void this.send(endOfStream(trailer, error));
    this.exchange.end();
  }

  respond(header: HeaderFields, bytes: Uint8Array, trailer: Headers, error: ConnectError | undefined): void {
    this.exchange.respond(200, header, concatBytes([bytes, endOfStream(trailer, error)]));
  }
}

/** Returns the end-stream envelope with the trailer and, if the call failed, the error. */
function endOfStream(trailer: Headers, error: ConnectError | undefined): Uint8Array {
  if (error !== undefined) appendCustomMetadata(trailer, error);
  const trailerHeaders = new LazyHeaders(headerFieldsToSend(trailer, []));
  const end = endStreamToJson(trailerHeaders, error && withoutMetadata(error), undefined);
  return writeEnvelope(endStreamFlag, toUtf8(JSON.stringify(end)));
}
