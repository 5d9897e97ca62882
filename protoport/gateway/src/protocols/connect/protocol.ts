import type { ConnectError } from "@connectrpc/connect";
import { endStreamFlag, endStreamToJson } from "@connectrpc/connect/protocol-connect";
import {
  concatBytes,
  type Exchange,
  type HeaderFields,
  planBody,
  prepareHeaderFields,
  toUtf8,
} from "../../http/index.ts";
import { writeEnvelope } from "../envelope/envelope.ts";
import { formats } from "../formats.ts";
import { headerFieldsToSend, LazyHeaders } from "../lazy-headers.ts";
import { type CallTarget, createTarget, type Protocol, type Wire } from "../protocol.ts";
import { httpStatusOf } from "../rest/rules/index.ts";
import type { Rpc } from "../rpc.ts";
import { callFormat, type CallFormat } from "../shared/content-type.ts";
import { EnvelopedWire, planEnvelope } from "../shared/enveloped-wire.ts";
import { appendCustomMetadata, withoutMetadata } from "../shared/error-metadata.ts";
import { negotiateEncodings } from "../shared/negotiation.ts";
import { readConnectTimeout } from "../shared/timeouts.ts";
import { ConnectUnaryWire, unaryError, versionProblem } from "./unary-wire.ts";

/** The Connect protocol (https://connectrpc.com/docs/protocol). */
export const connect: Protocol = {
  name: "connect",
  hasHttpStatus: true,
  targetsOf(rpc) {
    const { connect: isServed = true, readMaxBytes } = rpc.options;
    if (!isServed) return [];
    return formats.map(({ name }) => {
      const codec = rpc.codecs[name];
      if (rpc.kind === "unary") {
        const [contentType, format] = callFormat(`application/${name}`, codec, planBody(readMaxBytes));
        return [contentType, unaryTarget(rpc, format, undefined)];
      }
      const plan = planEnvelope(codec, rpc);
      const [contentType, format] = callFormat(`application/connect+${name}`, codec, plan);
      return [contentType, createTarget(connect, rpc, (exchange) => new ConnectStreamWire(exchange, rpc, format))];
    });
  },
  targetOfGet(rpc, query) {
    const parameters = new URLSearchParams(query);
    const encoding = parameters.get("encoding");
    const named = formats.find(({ name }) => name === encoding);
    if (named === undefined) return undefined;
    const codec = rpc.codecs[named.name];
    const [, format] = callFormat(`application/${named.name}`, codec, planBody(rpc.options.readMaxBytes));
    return unaryTarget(rpc, format, parameters);
  },
  handlesUnmatched(head) {
    const { contentType } = head.common;
    return (
      head.get("connect-protocol-version") !== null ||
      contentType?.toLowerCase().startsWith("application/connect+") === true
    );
  },
  openError(exchange, fields) {
    return {
      writeError: (error) => {
        const response = unaryError(error, [...jsonHeader, ...fields], undefined);
        exchange.respond(httpStatusOf(error), response.fields, response.body);
      },
    };
  },
};

const jsonHeader: HeaderFields = prepareHeaderFields("content-type", "application/json");

/** @param query - a GET request's query, which contains the message */
function unaryTarget(rpc: Rpc, format: CallFormat, query: URLSearchParams | undefined): CallTarget {
  const open = (exchange: Exchange): Wire => new ConnectUnaryWire(exchange, rpc, format, query);
  return { kind: rpc.kind, protocol: connect, rpc, pathTemplate: undefined, open };
}

/** A streaming Connect call. The last envelope in the response body contains the trailer and the error. */
class ConnectStreamWire extends EnvelopedWire {
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
