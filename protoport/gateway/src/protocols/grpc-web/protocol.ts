import { noAnnouncedLength, type BodyPlan, noBytes } from "../../http/index.ts";
import { callFormatsOf, refusalContentType } from "../shared/content-type.ts";
import { planEnvelope } from "../shared/envelope-plan.ts";
import { LazyHeaders } from "../lazy-headers.ts";
import type { Protocol } from "../protocol.ts";
import { createTarget } from "../target.ts";
import { writeResponse } from "./response.ts";
import { grpcWebTextBytes } from "./text.ts";
import { GrpcWebWire } from "./wire.ts";

const baseType = "application/grpc-web";
const textType = "application/grpc-web-text";

/** gRPC-Web (https://github.com/grpc/grpc/blob/master/doc/PROTOCOL-WEB.md). */
export const grpcWeb: Protocol = {
  name: "grpc-web",
  hasHttpStatus: false,
  targetsOf(rpc) {
    const { grpcWeb: isServed = true } = rpc.options;
    if (!isServed) return [];
    return [baseType, textType].flatMap((base) => {
      const isText = base === textType;
      const formats = callFormatsOf(base, rpc.codecs, (codec) => {
        const plan = planEnvelope(codec, rpc);
        return isText ? planText(plan) : plan;
      });
      return formats.map(([contentType, format]) => {
        const target = createTarget(grpcWeb, rpc, (exchange) => new GrpcWebWire(exchange, rpc, format, isText));
        return [contentType, target] as const;
      });
    });
  },
  handlesUnmatched({ common: { contentType } }) {
    return contentType?.toLowerCase().startsWith(baseType) === true;
  },
  openError(exchange) {
    const contentType = refusalContentType(exchange.common.contentType, [textType, baseType]);
    const isText = contentType.startsWith(textType);
    const header = ["content-type", contentType];
    return {
      writeError: (error) => writeResponse(exchange, header, noBytes, new LazyHeaders([]), error, isText),
    };
  },
};

function planText({ limitBytes, memory }: BodyPlan): BodyPlan {
  return { limitBytes: grpcWebTextBytes(limitBytes), memory, announcedBytes: noAnnouncedLength };
}
