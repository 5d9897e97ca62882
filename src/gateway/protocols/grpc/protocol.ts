import { callFormatsOf, refusalContentType } from "../content-type.ts";
import { LazyHeaders } from "../lazy-headers.ts";
import type { Protocol } from "../protocol.ts";
import { createTarget } from "../target.ts";
import { setStatus } from "./status.ts";
import { GrpcWire } from "./wire.ts";

const baseType = "application/grpc";

/** gRPC over HTTP/2 (https://github.com/grpc/grpc/blob/master/doc/PROTOCOL-HTTP2.md). */
export const grpc: Protocol = {
  name: "grpc",
  hasHttpStatus: false,
  targetsOf(rpc) {
    if (rpc.options.grpc === false) return [];
    return callFormatsOf(baseType, rpc.codecs).map(([contentType, format]) => {
      return [contentType, createTarget(grpc, rpc, (exchange) => new GrpcWire(exchange, rpc, format))];
    });
  },
  claims({ common: { contentType } }) {
    return contentType?.toLowerCase().startsWith(baseType) === true;
  },
  /** In the form that is called `Trailers-Only`. */
  refuse(exchange, { error }) {
    const trailer = new LazyHeaders(["content-type", refusalContentType(exchange.common.contentType, [baseType])]);
    setStatus(trailer, error);
    exchange.answer(200, trailer.fields);
  },
};
