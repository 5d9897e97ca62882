import { brotliCompressSync, gzipSync } from "node:zlib";
// oxfmt-ignore
import { GetReadingRequestSchema, WaterBedRequestSchema
} from "../../../../../../examples/gen/greenhouse/v1/greenhouse_pb.ts";
// oxfmt-ignore
import { encodeEnvelope, encodeMessage, type Field, type HttpRequest, rpcRequest, type Wire, type WireFormat
} from "@protoport/testing";

/** A call in any wire format that supports unary calls. */
export interface UnaryCallCase {
  readonly name: string;
  readonly request: (format: WireFormat) => HttpRequest;
  /** Whether the case applies to a wire. By default, all. */
  readonly only?: (wire: Wire) => boolean;
  /** Whether only the code is compared, because the message or a field differs on purpose. */
  readonly codeOnly?: (wire: Wire) => boolean;
  /** Whether only the HTTP status is compared, because connect-node responds without a body and without Allow. */
  readonly httpStatusOnly?: boolean;
}

const waterBed = "/greenhouse.v1.GreenhouseService/WaterBed";
const getReading = "/greenhouse.v1.GreenhouseService/GetReading";

const water =
  (note: string, header: readonly Field[] = [], liters = 3) =>
  (format: WireFormat): HttpRequest =>
    rpcRequest(format, encodeMessage(format, WaterBedRequestSchema, { bed: 7n, liters, note }), header, waterBed);

/** A raw body instead of a message. */
const raw =
  (body: (format: WireFormat) => Uint8Array, header: readonly Field[] = []) =>
  (format: WireFormat): HttpRequest => ({
    ...rpcRequest(format, Buffer.alloc(0), header, waterBed),
    body: body(format),
  });

const isEnveloped = ({ format }: Wire): boolean => format.protocol !== "connect";
const isConnect = ({ format }: Wire): boolean => format.protocol === "connect";
const isJson = ({ format }: Wire): boolean => format.codec === "json";
const always = (): boolean => true;

const outcomeCases: readonly UnaryCallCase[] = [
  { name: "a response", request: water("thanks") },
  { name: "a response with additional fields", request: water("tell more") },
  { name: "a long response", request: water("answer at length") },
  {
    name: "an empty message",
    request: (format) => rpcRequest(format, encodeMessage(format, WaterBedRequestSchema, {}), [], waterBed),
  },
  { name: "non-ASCII text", request: water("Wärme für 🌵") },
  ...Array.from({ length: 16 }, (_, index) => ({
    name: `an error with code ${String(index + 1)}`,
    request: water(`fail: ${String(index + 1)}: no water`),
    // HTTP/1.1 does not differ by code.
    only: ({ httpVersion }: Wire) => httpVersion === "2" || index === 0,
  })),
  { name: "an error without a message", request: water("fail: 5: ") },
  { name: "an error with a non-ASCII message", request: water("fail: 9: 100 % Wärme für 🌵\n") },
  { name: "an error that is not a ConnectError", request: water("break") },
  { name: "a thrown string", request: water("break with words") },
];

// oxfmt-ignore
const headerCases: readonly UnaryCallCase[] = [
  { name: "a custom header", request: water("", [["x-custom", "one"]]) },
  { name: "a custom header, twice", request: water("", [["x-custom", "one"], ["x-custom", "two"]]) },
  { name: "a binary header", request: water("", [["x-custom-bin", "AAECAw"]]) },
  { name: "an empty header", request: water("", [["x-custom", ""]]) },
  { name: "a cookie", request: water("", [["cookie", "a=1; b=2"]]) },
];

const timeoutCases: readonly UnaryCallCase[] = [
  { name: "a long deadline", request: (format) => water("", timeout(format, 60_000))(format) },
  { name: "a deadline that is exceeded", request: (format) => water("wait", timeout(format, 30))(format) },
  {
    name: "an exceeded deadline",
    request: (format) => water("wait", timeout(format, 0))(format),
    // The handler does not run, so the response has no fields from it.
    codeOnly: always,
  },
  { name: "a deadline that is not a number", request: (format) => water("", [[timeoutName(format), "soon"]])(format) },
  { name: "a negative deadline", request: (format) => water("", [[timeoutName(format), "-1"]])(format) },
];

// oxfmt-ignore
const compressionCases: readonly UnaryCallCase[] = [
  { name: "a response that may be compressed with gzip",
    request: (format) => water("answer at length", [[acceptName(format), "gzip"]])(format) },
  { name: "a response that may be compressed with Brotli",
    request: (format) => water("answer at length", [[acceptName(format), "br"]])(format) },
  { name: "a short response that may be compressed",
    request: (format) => water("", [[acceptName(format), "gzip, br"]])(format) },
  { name: "an error that may be compressed",
    request: (format) => water(`fail: 5: ${"no water ".repeat(300)}`, [[acceptName(format), "gzip"]])(format) },
  { name: "a message in gzip", request: (format) => compressedWater(format, "gzip", gzipSync) },
  { name: "a message in Brotli", request: (format) => compressedWater(format, "br", brotliCompressSync) },
];

const large = "w".repeat(20_000);
const limitCases: readonly UnaryCallCase[] = [
  { name: "a message just under the limit", request: water("w".repeat(9_900)) },
  {
    name: "a compressed message above the limit",
    request: (format) => compressedWater(format, "gzip", gzipSync, large),
  },
];

// Different parsers write the messages, which contain the position.
// oxfmt-ignore
const messageCases: readonly UnaryCallCase[] = [
  { name: "invalid JSON", request: raw(inFormat("{")), only: isJson, codeOnly: always },
  { name: "JSON with an unknown field", request: raw(inFormat('{"bed":"7","pots":3}')), only: isJson },
  { name: "JSON with a number for an int64", request: raw(inFormat('{"bed":7}')), only: isJson },
  { name: "no envelope", request: raw(() => Buffer.alloc(0)), only: isEnveloped, codeOnly: always },
  { name: "half an envelope", request: raw(() => Buffer.of(0, 0, 0)), only: isEnveloped, codeOnly: always },
  { name: "two messages", request: raw((format) => Buffer.concat([inFormat("{}")(format), inFormat("{}")(format)])),
    only: (wire) => isEnveloped(wire) && isJson(wire), codeOnly: always },
];

const getCases: readonly UnaryCallCase[] = [
  ...["thanks", "tell more", "fail: 5: no water", "break"].map((sensor) => ({
    name: `a GET with "${sensor}"`,
    request: (format: WireFormat) => get(format, sensor),
    only: isConnect,
  })),
  {
    name: "a GET without a version",
    request: (format) => ({ httpMethod: "GET", path: `${getReading}?encoding=${format.codec}&message=`, header: [] }),
    only: isConnect,
    codeOnly: isJson,
  },
];

// oxfmt-ignore
const invalidCases: readonly UnaryCallCase[] = [
  { name: "a GET of an RPC with side effects", request: () => ({ httpMethod: "GET", path: waterBed, header: [] }),
    httpStatusOnly: true },
  { name: "a content type that is not an RPC format",
    request: (format) => ({ ...water("")(format), header: [["content-type", "text/plain"]] }), httpStatusOnly: true },
];

/**
 * Every unary call that is sent to both servers. Excludes the cases in which connect-node reports a client error, such
 * as an invalid message, as an internal error. Also excludes unknown paths, which get a response without a body.
 */
const bodyCases = [...compressionCases, ...limitCases, ...messageCases];
const tables = [outcomeCases, headerCases, timeoutCases, bodyCases, getCases, invalidCases];
export const unaryCallTable: readonly UnaryCallCase[] = tables.flat();

function inFormat(message: string | Uint8Array): (format: WireFormat) => Uint8Array {
  const bytes = Buffer.from(message);
  return (format) => (format.protocol === "connect" ? bytes : encodeEnvelope(0, bytes));
}

function timeout(format: WireFormat, timeoutMs: number): readonly Field[] {
  const field = format.timeout?.(timeoutMs);
  return field === undefined ? [] : [field];
}

function timeoutName(format: WireFormat): string {
  return format.protocol === "connect" ? "connect-timeout-ms" : "grpc-timeout";
}

function acceptName(format: WireFormat): string {
  return format.protocol === "connect" ? "accept-encoding" : "grpc-accept-encoding";
}

function compressedWater(
  format: WireFormat,
  encoding: string,
  compress: (bytes: Uint8Array) => Buffer,
  note = "compressed",
): HttpRequest {
  const bytes = compress(encodeMessage(format, WaterBedRequestSchema, { bed: 7n, note }));
  const name = format.protocol === "connect" ? "content-encoding" : "grpc-encoding";
  const request = rpcRequest(format, Buffer.alloc(0), [[name, encoding]], waterBed);
  return { ...request, body: format.protocol === "connect" ? bytes : encodeEnvelope(1, bytes) };
}

function get(format: WireFormat, sensor: string): HttpRequest {
  const message = encodeMessage(format, GetReadingRequestSchema, { sensor });
  const query = new URLSearchParams({ connect: "v1", encoding: format.codec });
  if (format.codec === "proto") query.set("base64", "1");
  query.set("message", message.toString(format.codec === "proto" ? "base64url" : "utf8"));
  return { httpMethod: "GET", path: `${getReading}?${query.toString()}`, header: [] };
}
