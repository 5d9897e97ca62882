import { WaterBedRequestSchema } from "../../examples/gen/greenhouse/v1/greenhouse_pb.ts";
import type { Field, HttpRequest } from "../../testing/src/http/exchange.ts";
import { Dice } from "../../testing/src/dice.ts";
import { encodeMessage, rpcRequest, wireFormats } from "../../testing/src/gateway/wire-format.ts";
import type { NamedRequest } from "./named-request.ts";
import { streamRequests } from "./streams.ts";

const waterBed = "/greenhouse.v1.GreenhouseService/WaterBed";

/** Valid calls. Several malformed calls are derived from each valid call. */
const validCalls: readonly HttpRequest[] = [
  ...Object.values(wireFormats).map((format) => {
    if (format.protocol !== "rest") {
      return rpcRequest(format, encodeMessage(format, WaterBedRequestSchema, { bed: 7n, liters: 3 }), [], waterBed);
    }
    const header: readonly Field[] = [["content-type", "application/json"]];
    return { httpMethod: "POST", path: "/beds/7:water", header, body: Buffer.from('{"liters":3}') };
  }),
  { httpMethod: "GET", path: "/sensors/roof/reading", header: [] },
  {
    httpMethod: "GET",
    path: "/greenhouse.v1.GreenhouseService/GetReading?connect=v1&encoding=json&message=%7B%7D",
    header: [],
  },
  ...streamRequests.filter(({ name }) => /that comes to "a sensor" by /.test(name)),
];

const contentTypes = [
  "",
  "text/plain",
  "application/JSON",
  "application/json;charset=utf-8",
  "application/json; charset=utf-16",
  "application/proto; charset=utf-8",
  "application/protobuf",
  "application/cbor",
  "application/connect+json",
  "application/connect+cbor",
  "APPLICATION/GRPC+PROTO",
  "application/grpc+",
  "application/grpc+thrift",
  "application/grpc; charset=utf-8",
  "application/grpc-web+json",
  "application/grpc-web-text+thrift",
  "application/grpc-web-text+json",
  "application/x-www-form-urlencoded",
  "multipart/form-data; boundary=x",
];

const fields: readonly Field[] = [
  ["grpc-timeout", "1"],
  ["grpc-timeout", "1X"],
  ["grpc-timeout", "999999999H"],
  ["grpc-encoding", "snappy"],
  ["grpc-encoding", "gzip"],
  ["grpc-accept-encoding", "gzip;q=0, br"],
  ["connect-timeout-ms", "-1"],
  ["connect-timeout-ms", "12345678901"],
  ["connect-protocol-version", "2"],
  ["connect-content-encoding", "snappy"],
  ["content-encoding", "snappy"],
  ["content-encoding", "gzip"],
  ["accept-encoding", "gzip, br;q=0.5"],
  ["accept", "text/event-stream"],
  ["accept", ";;;"],
  ["x-custom-bin", "not base64!"],
];

const methods = ["GET", "HEAD", "PUT", "PATCH", "DELETE", "OPTIONS", "BREW"];

const corruptions: readonly ((dice: Dice, request: HttpRequest) => HttpRequest)[] = [
  (dice, request) => withBody(request, (body) => body.subarray(0, dice.roll(body.byteLength + 1))),
  (dice, request) => withBody(request, (body) => flipBit(dice, body)),
  (dice, request) => withBody(request, (body) => Buffer.concat([body, dice.bytes(8)])),
  (dice, request) => withBody(request, (body) => Buffer.concat([dice.bytes(8), body])),
  (_, request) => withBody(request, (body) => Buffer.concat([body, body])),
  (dice, request) => withBody(request, () => dice.bytes(40)),
  (dice, request) => withField(request, "content-type", dice.oneOf(contentTypes)),
  (dice, request) => withField(request, "content-type", dice.oneOf(contentTypes)),
  (_, request) => ({ ...request, header: request.header.filter(([name]) => name !== "content-type") }),
  (dice, request) => withField(request, ...dice.oneOf(fields)),
  (dice, request) => withField(request, ...dice.oneOf(fields)),
  (dice, request) => ({ ...request, httpMethod: dice.oneOf(methods) }),
  (dice, request) => ({ ...request, path: corruptPath(dice, request.path) }),
  (dice, request) => ({ ...request, path: corruptPath(dice, request.path) }),
];

/** 200 calls with one or two random corruptions, from fixed seeds. A few of these calls are still valid. */
export const malformedCalls: readonly NamedRequest[] = Array.from({ length: 200 }, (_, seed) => {
  const dice = new Dice(seed);
  let request = dice.oneOf(validCalls);
  for (let remaining = 1 + dice.roll(2); remaining > 0; remaining--) request = dice.oneOf(corruptions)(dice, request);
  return { ...request, name: `seed ${seed}: ${request.httpMethod} ${request.path}` };
});

function withBody(request: HttpRequest, change: (body: Buffer) => Uint8Array): HttpRequest {
  return { ...request, body: change(Buffer.from(request.body ?? [])) };
}

function withField(request: HttpRequest, name: string, value: string): HttpRequest {
  return { ...request, header: [...request.header.filter((field) => field[0] !== name), [name, value]] };
}

function flipBit(dice: Dice, body: Buffer): Buffer {
  const flipped = Buffer.from(body);
  const at = dice.roll(Math.max(1, flipped.byteLength));
  if (at < flipped.byteLength) flipped[at] = (flipped[at] ?? 0) ^ (1 << dice.roll(8));
  return flipped;
}

function corruptPath(dice: Dice, path: string): string {
  const at = 1 + dice.roll(path.length);
  const piece = dice.oneOf(["/", "%", "%2F", "%zz", "?", "?bed=8", "&x=y", "a", ":", ".", "//", "\\", "%C0%B7"]);
  return dice.oneOf([path.slice(0, at), path.toLowerCase(), `${path}/`, path.slice(0, at) + piece + path.slice(at)]);
}
