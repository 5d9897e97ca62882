import { type Exchange, type HeaderFields, planBody, prepareHeaderFields } from "../../http/index.ts";
import { callFormat, type CallFormat } from "../shared/content-type.ts";
import { formats } from "../formats.ts";
import { planEnvelope } from "../shared/envelope-plan.ts";
import type { CallTarget, Protocol, Wire } from "../protocol.ts";
import type { Rpc } from "../rpc.ts";
import { createTarget } from "../target.ts";
import { ConnectStreamWire } from "./stream-wire.ts";
import { httpStatusOf } from "../rest/rules/index.ts";
import { unaryError } from "./unary-error.ts";
import { ConnectUnaryWire } from "./unary-wire.ts";

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
