import { create, toBinary } from "@bufbuild/protobuf";
import type { Field, HttpRequest } from "../../../../testing/src/http/exchange.ts";
import { envelope } from "../../../../testing/src/gateway/scripted-http2-server.ts";
import { LegacySchema } from "../../../../testing/src/gen/kitchensink/v1/legacy_pb.ts";

// Calls to which the echo servers in all languages respond.

const header: readonly Field[] = Object.entries({ "content-type": "application/grpc+proto", te: "trailers" });
const service = "/kitchensink.v1.LegacySink";

export const message: Buffer = envelope(toBinary(LegacySchema, create(LegacySchema, { name: "a" })));

export const unary: HttpRequest = { httpMethod: "POST", path: `${service}/Keep`, header, body: message };
/** A bidirectional stream, without its messages. */
export const stream: HttpRequest = { httpMethod: "POST", path: `${service}/KeepAll`, header };
