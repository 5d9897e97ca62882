import { callFormatsOf, refusalContentType } from "../shared/content-type.ts";
import { planEnvelope } from "../shared/envelope-plan.ts";
import { LazyHeaders } from "../lazy-headers.ts";
import type { Protocol } from "../protocol.ts";
import { createTarget } from "../target.ts";
import { writeTrailersOnly } from "./status.ts";
import { GrpcWire } from "./wire.ts";

const baseType = "application/grpc";

/** gRPC over HTTP/2 (https://github.com/grpc/grpc/blob/master/doc/PROTOCOL-HTTP2.md). */
export const grpc: Protocol = {
  name: "grpc",
  hasHttpStatus: false,
  targetsOf(rpc) {
    const { grpc: isServed = true } = rpc.options;
    if (!isServed) return [];
    const formats = callFormatsOf(baseType, rpc.codecs, (codec) => planEnvelope(codec, rpc));
    return formats.map(([contentType, format]) => {
      return [contentType, createTarget(grpc, rpc, (exchange) => new GrpcWire(exchange, rpc, format))];
    });
  },
  handlesUnmatched({ common: { contentType } }) {
    return contentType?.toLowerCase().startsWith(baseType) === true;
  },
  openError(exchange) {
    const contentType = refusalContentType(exchange.common.contentType, [baseType]);
    return {
      writeError: (error) => writeTrailersOnly(exchange, ["content-type", contentType], new LazyHeaders([]), error),
    };
  },
};
