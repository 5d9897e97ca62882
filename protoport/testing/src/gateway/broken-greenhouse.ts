/** A program whose greenhouses each have one error. The program calls each greenhouse once in every format. */
import type { GatewayOptions } from "../../../gateway/src/index.ts";
import { createTestGateway } from "./test-gateway.ts";
import { GreenhouseService, WaterBedRequestSchema } from "../../../examples/gen/greenhouse/v1/greenhouse_pb.ts";
import type { Field, HttpRequest } from "../http/exchange.ts";
import { exchangeFetch } from "../http/fetch.ts";
import { encodeEnvelope } from "./envelope.ts";
import { encodeEmpty, encodeMessage, exchange, rpcRequest, type WireFormat, wireFormats } from "./wire-format.ts";

const waterBedProcedure = "/greenhouse.v1.GreenhouseService/WaterBed";
const watchReadingsProcedure = "/greenhouse.v1.GreenhouseService/WatchReadings";

function pump(): never {
  const error = new TypeError("the pump is broken", { cause: new RangeError("no\nwater") });
  throw Object.assign(error, { request: { authorization: "Bearer s3cret" } });
}

const waterBed = ({ note }: { readonly note: string }) => ({ note });
const sound: GatewayOptions = { routes: (router) => router.service(GreenhouseService, { waterBed }) };
/** The greenhouses by their broken part. */
const broken: Readonly<Record<string, GatewayOptions>> = {
  handler: { routes: (router) => router.service(GreenhouseService, { waterBed: pump }) },
  interceptor: { ...sound, interceptors: [() => pump] },
  stream: {
    routes: (router) =>
      router.service(GreenhouseService, {
        async *watchReadings() {
          yield {};
          pump();
        },
      }),
  },
  admit: { ...sound, admit: pump },
  "later-admit": { ...sound, admit: async () => pump() },
};

function requestOf(format: WireFormat, place: string): HttpRequest {
  const header: readonly Field[] = [
    ["authorization", "Bearer s3cret"],
    ["x-request-id", `${place}-of-${format.name}`],
  ];
  if (place.startsWith("stream")) {
    if (format.protocol !== "connect") return rpcRequest(format, Buffer.of(), header, watchReadingsProcedure);
    const contentType = `application/connect+${format.codec}`;
    const body = encodeEnvelope(0, encodeEmpty(format));
    const type: Field = ["content-type", contentType];
    return { httpMethod: "POST", path: watchReadingsProcedure, header: [type, ...header], body };
  }
  const message = encodeMessage(format, WaterBedRequestSchema, { note: "s3cret" });
  if (format.protocol !== "rest") return rpcRequest(format, message, header, waterBedProcedure);
  const body = Buffer.from('{"note":"s3cret"}');
  return { httpMethod: "POST", path: "/beds/7:water", header: [["content-type", "application/json"], ...header], body };
}

for (const [place, options] of Object.entries(broken)) {
  const gateway = createTestGateway(options);
  const address = await gateway.listen({ host: "127.0.0.1" });
  for (const format of Object.values(wireFormats)) {
    const isSaid = place !== "stream" || (format.codec === "proto" && format.name !== "grpc-web-text");
    if (isSaid) await exchange(address, "2", requestOf(format, place));
  }
  await exchangeFetch(gateway.fetch, requestOf(wireFormats["connect-proto"], `${place}-by-fetch`));
  await gateway.close();
}
