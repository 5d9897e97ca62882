import { callFormatsOf, refusalContentType } from "../content-type.ts";
import { setStatus } from "../grpc/status.ts";
import { LazyHeaders } from "../lazy-headers.ts";
import type { Protocol } from "../protocol.ts";
import { createTarget } from "../target.ts";
import { encodeGrpcWebText } from "./text.ts";
import { trailerEnvelope } from "./trailer.ts";
import { GrpcWebWire } from "./wire.ts";

const baseType = "application/grpc-web";
const textType = "application/grpc-web-text";

/** gRPC-Web (https://github.com/grpc/grpc/blob/master/doc/PROTOCOL-WEB.md). */
export const grpcWeb: Protocol = {
  name: "grpc-web",
  hasHttpStatus: false,
  targetsOf(rpc) {
    if (rpc.options.grpcWeb === false) return [];
    return [baseType, textType].flatMap((base) =>
      callFormatsOf(base, rpc.codecs).map(([contentType, format]) => {
        const isText = base === textType;
        const target = createTarget(grpcWeb, rpc, (exchange) => new GrpcWebWire(exchange, rpc, format, isText));
        return [contentType, target] as const;
      }),
    );
  },
  claims({ common: { contentType } }) {
    return contentType?.toLowerCase().startsWith(baseType) === true;
  },
  refuse(exchange, { error }) {
    const contentType = refusalContentType(exchange.common.contentType, [textType, baseType]);
    const trailer = new LazyHeaders([]);
    setStatus(trailer, error);
    const body = trailerEnvelope(trailer);
    const isText = contentType.startsWith(textType);
    exchange.answer(200, ["content-type", contentType], isText ? encodeGrpcWebText(body) : body);
  },
};
