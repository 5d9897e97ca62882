import { gzipSync } from "node:zlib";
import { type DescMessage, type MessageInitShape, toJsonString, create, toBinary } from "@bufbuild/protobuf";
import type { HandlerContext } from "@connectrpc/connect";
import {
  AdjustmentSchema,
  GreenhouseService,
  type Reading,
  ReadingSchema,
  WatchReadingsRequestSchema,
} from "../../examples/gen/greenhouse/v1/greenhouse_pb.ts";
import type { GatewayOptions } from "../../gateway/src/index.ts";
import {
  greenhouse,
  perform,
  readMaxBytes,
} from "../../gateway/test/suites/long/engine/compared-with-node/side-by-side.ts";
import type { Field } from "../../testing/src/http/exchange.ts";
import { encodeEnvelope } from "../../testing/src/gateway/envelope.ts";
import { type WireFormat, wireFormats } from "../../testing/src/gateway/wire-format.ts";
import type { NamedRequest } from "./named-request.ts";

/** Options for the greenhouse's gateway, without interceptors. A sensor's name determines what the handler does. */
export const streamingOptions: GatewayOptions = {
  readMaxBytes,
  routes: (router) =>
    router.service(GreenhouseService, {
      ...greenhouse,
      watchReadings,
      async recordReadings(readings, context) {
        let count = 0;
        for await (const { sensor } of readings) {
          count += 1;
          await perform(sensor, context);
        }
        return { count, meanDegreesCelsius: 21.5 };
      },
      controlClimate,
    }),
};

async function* watchReadings(
  { sensor, count }: { readonly sensor: string; readonly count: number },
  context: HandlerContext,
): AsyncGenerator<MessageInitShape<typeof ReadingSchema>> {
  if (!sensor.startsWith("later: ")) await perform(sensor, context);
  for (let at = 0; at < count; at++) yield { sensor, degreesCelsius: at };
  if (sensor.startsWith("later: ")) await perform(sensor.slice("later: ".length), context);
}

async function* controlClimate(
  readings: AsyncIterable<Reading>,
  context: HandlerContext,
): AsyncGenerator<MessageInitShape<typeof AdjustmentSchema>> {
  for await (const { sensor, degreesCelsius } of readings) {
    await perform(sensor, context);
    yield { sensor, heatWatts: degreesCelsius };
  }
}

/** The RPC and a call's messages. */
interface Call {
  readonly name: string;
  readonly rpc: string;
  readonly messages: readonly (readonly [text: string, count?: number])[];
}

const orders = ["a sensor", "fail: 5: no sensor", "fail: 9: Wärme\n", "break", "tell more"];

const eachOf = (...texts: readonly string[]): Call["messages"] => texts.map((each) => [each]);

const calls: readonly Call[] = [
  ...[...orders, ...orders.map((order) => `later: ${order}`)].map((order) => ({
    name: `a server stream that comes to "${order}"`,
    rpc: "WatchReadings",
    messages: [[order, 3] as const],
  })),
  { name: "a server stream without messages", rpc: "WatchReadings", messages: [["a sensor", 0]] },
  { name: "a server stream of many messages", rpc: "WatchReadings", messages: [["a sensor", 300]] },
  { name: "a server stream of two requests", rpc: "WatchReadings", messages: eachOf("a", "b") },
  { name: "a server stream of no request", rpc: "WatchReadings", messages: [] },
  ...["RecordReadings", "ControlClimate"].flatMap((rpc) => [
    ...orders.map((order): Call => ({
      name: `${rpc} that comes to "${order}"`,
      rpc,
      messages: eachOf("a", "b", order),
    })),
    { name: `${rpc} of no messages`, rpc, messages: [] },
    { name: `${rpc} of many messages`, rpc, messages: eachOf(...Array<string>(100).fill("a sensor")) },
    { name: `${rpc} of a message over the limit`, rpc, messages: eachOf("a", "b".repeat(readMaxBytes + 1)) },
  ]),
];

/** The way in which a call's messages are sent or malformed. */
interface Variant {
  readonly name: string;
  readonly header?: (format: WireFormat) => readonly Field[];
  readonly envelop?: (message: Uint8Array) => Uint8Array;
  readonly corrupt?: (body: Buffer) => Uint8Array;
}

const variants: readonly Variant[] = [
  { name: "" },
  { name: ", compressed", header: (format) => encoding(format, "gzip"), envelop: zipped },
  { name: ", to be compressed", header: (format) => accepting(format, "gzip") },
  { name: ", in an unknown encoding", header: (format) => encoding(format, "snappy"), envelop: zipped },
  { name: ", compressed without an encoding", envelop: zipped },
  { name: ", with a deadline", header: (format) => [format.timeout?.(60_000) ?? ["x", "y"]] },
  { name: ", with a deadline that has passed", header: (format) => [format.timeout?.(0) ?? ["x", "y"]] },
  { name: ", with a deadline that is malformed", header: (format) => [[timeoutName(format), "soon"]] },
  { name: ", truncated", corrupt: (body) => body.subarray(0, -3) },
  { name: ", with reserved flags", envelop: (message) => encodeEnvelope(6, message) },
  { name: ", with a malformed message", envelop: () => encodeEnvelope(0, Buffer.from("\x7f{")) },
];

/** Calls for each kind of stream in each RPC protocol. */
export const streamRequests: readonly NamedRequest[] = Object.values(wireFormats)
  .filter(({ protocol }) => protocol !== "rest")
  .flatMap((format) => calls.flatMap((call) => variants.map((variant) => toRequest(asStream(format), call, variant))));

/** Connect streams have another content type than unary calls. */
function asStream(format: WireFormat): WireFormat {
  if (format.protocol !== "connect") return format;
  return { ...format, contentType: `application/connect+${format.codec}` };
}

function toRequest(format: WireFormat, { name, rpc, messages }: Call, variant: Variant): NamedRequest {
  const { header, envelop = (message) => encodeEnvelope(0, message), corrupt = (body) => body } = variant;
  const encoded = messages.map(([text, count = 1]) =>
    rpc === "WatchReadings"
      ? encode(format, WatchReadingsRequestSchema, { sensor: text, count })
      : encode(format, ReadingSchema, { sensor: text, degreesCelsius: 1.5 }),
  );
  const body = corrupt(Buffer.concat(encoded.map(envelop)));
  return {
    name: `${name}${variant.name} by ${format.name}`,
    httpMethod: "POST",
    path: `/greenhouse.v1.GreenhouseService/${rpc}`,
    header: [["content-type", format.contentType ?? ""], ...format.header, ...(header?.(format) ?? [])],
    body: format.name === "grpc-web-text" ? Buffer.from(Buffer.from(body).toString("base64")) : body,
  };
}

function encode<Desc extends DescMessage>(
  { codec }: WireFormat,
  schema: Desc,
  init: MessageInitShape<Desc>,
): Uint8Array {
  const message = create(schema, init);
  return codec === "json" ? Buffer.from(toJsonString(schema, message)) : toBinary(schema, message);
}

function zipped(message: Uint8Array): Uint8Array {
  return encodeEnvelope(1, gzipSync(message));
}

function encoding({ protocol }: WireFormat, name: string): readonly Field[] {
  return [[protocol === "connect" ? "connect-content-encoding" : "grpc-encoding", name]];
}

function accepting({ protocol }: WireFormat, name: string): readonly Field[] {
  return [[protocol === "connect" ? "connect-accept-encoding" : "grpc-accept-encoding", name]];
}

function timeoutName({ protocol }: WireFormat): string {
  return protocol === "connect" ? "connect-timeout-ms" : "grpc-timeout";
}
