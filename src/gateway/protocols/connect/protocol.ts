import { errorToJsonBytes } from "@connectrpc/connect/protocol-connect";
import { type Exchange, type HeaderFields, prepareHeaderFields } from "../../carriers/index.ts";
import { callFormat, type CallFormat, normalizeContentType } from "../content-type.ts";
import { metadataFields } from "../error-metadata.ts";
import type { CallTarget, Protocol, UnaryWire } from "../protocol.ts";
import type { UnaryRpc } from "../rpc.ts";
import { createTarget } from "../target.ts";
import { ConnectStreamWire, endOfStream } from "./stream-wire.ts";
import { ConnectUnaryWire } from "./unary-wire.ts";

/** The Connect protocol (https://connectrpc.com/docs/protocol). */
export const connect: Protocol = {
  name: "connect",
  hasHttpStatus: true,
  targetsOf(rpc) {
    if (rpc.options.connect === false) return [];
    return [...rpc.codecs].map(([name, codec]) => {
      const isUnary = rpc.kind === "unary";
      const [contentType, format] = callFormat(`application/${isUnary ? "" : "connect+"}${name}`, codec);
      if (isUnary) return [contentType, unaryTarget(rpc, format, undefined)];
      return [contentType, createTarget(connect, rpc, (exchange) => new ConnectStreamWire(exchange, rpc, format))];
    });
  },
  targetOfGet(rpc, query) {
    const parameters = new URLSearchParams(query);
    const name = parameters.get("encoding") ?? "";
    const codec = rpc.codecs.get(name);
    return codec && unaryTarget(rpc, callFormat(`application/${name}`, codec)[1], parameters);
  },
  claims({ common: { contentType, connectProtocolVersion } }) {
    return connectProtocolVersion !== null || contentType?.toLowerCase().startsWith("application/connect+") === true;
  },
  refuse(exchange, { httpStatus, error, fields, target }) {
    if (target?.kind === "stream") {
      // Clients look for the error of a stream in the message that ends it alone ("Streaming-Response").
      const contentType = normalizeContentType(exchange.common.contentType ?? "");
      return exchange.answer(200, ["content-type", contentType], endOfStream(new Headers(), error));
    }
    const body = errorToJsonBytes(error, undefined);
    exchange.answer(httpStatus, [...jsonHeader, ...fields, ...metadataFields(error)], body);
  },
};

const jsonHeader: HeaderFields = prepareHeaderFields("content-type", "application/json");

/** @param query - the query of a GET, which holds the message; `undefined` for POST */
function unaryTarget(rpc: UnaryRpc, format: CallFormat, query: URLSearchParams | undefined): CallTarget {
  const open = (exchange: Exchange): UnaryWire => new ConnectUnaryWire(exchange, rpc, format, query);
  return { kind: "unary", protocol: connect, rpc, pathTemplate: undefined, open };
}
