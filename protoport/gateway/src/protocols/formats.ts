import type { DescMethod, Message } from "@bufbuild/protobuf";
import type { UniversalHandlerOptions } from "@connectrpc/connect/protocol";
import type { ReadJsonOptions } from "../protobuf/index.ts";
import type { Codec, Format, FormatName } from "./formats/format.ts";
import { json } from "./formats/json.ts";
import type { Envelope, Take } from "./envelope/envelope.ts";
import { proto } from "./formats/proto.ts";

const byName: Readonly<Record<FormatName, Format>> = { proto, json };

/** The RPC protocols' formats. A content type without a format, such as `application/grpc`, means the first format. */
export const formats: readonly Format[] = /* @__PURE__ */ Object.values(byName);

/** One RPC's codecs. */
export type MethodCodecs = Readonly<Record<FormatName, Codec>>;

/** Returns the function that decodes requests in the binary format for a handler. */
export function takeMessages({ proto: codec }: MethodCodecs): Take<Message> {
  return ({ bytes }) => codec.decode(bytes);
}

/** Passes on a request in the binary format unchanged, to an upstream. */
export function takeEnvelopes(envelope: Envelope): Envelope {
  return envelope;
}

/** Creates an RPC's codecs from Connect's options. */
export function createMethodCodecs(
  method: DescMethod,
  options: UniversalHandlerOptions,
  jsonRules: ReadJsonOptions,
): MethodCodecs {
  return {
    proto: proto.createCodec(method, options, jsonRules),
    json: json.createCodec(method, options, jsonRules),
  };
}
