import { brotliCompressSync, gzipSync } from "node:zlib";
import {
  GetReadingRequestSchema,
  WaterBedRequestSchema,
} from "../../../../examples/gen/greenhouse/v1/greenhouse_pb.ts";
import { encodeEnvelope } from "../../../testing/src/gateway/envelope.ts";
import type { Field, HttpRequest } from "../../../testing/src/carriers/exchange.ts";
import { encodeMessage, rpcRequest, type Carriage, type WireFormat } from "../../../testing/src/gateway/wire-format.ts";

/** One call of the table, in any wire format of unary calls. */
export interface UnaryCallRow {
  readonly name: string;
  readonly request: (format: WireFormat) => HttpRequest;
  /** The carriages that the row makes sense on; all of them by default. */
  readonly only?: (carriage: Carriage) => boolean;
  /** The carriages on which the code is the same alone, because the words or a field differ on purpose. */
  readonly codeAlone?: (carriage: Carriage) => boolean;
  /** Whether only the HTTP status is the same: connect-node responds without a body, and without Allow. */
  readonly httpStatusAlone?: boolean;
}

const waterBed = "/greenhouse.v1.GreenhouseService/WaterBed";
const getReading = "/greenhouse.v1.GreenhouseService/GetReading";

const water =
  (note: string, header: readonly Field[] = [], liters = 3) =>
  (format: WireFormat): HttpRequest =>
    rpcRequest(format, encodeMessage(format, WaterBedRequestSchema, { bed: 7n, liters, note }), header, waterBed);

/** A body as it stands, in place of a message. */
const raw =
  (body: (format: WireFormat) => Uint8Array, header: readonly Field[] = []) =>
  (format: WireFormat): HttpRequest => ({
    ...rpcRequest(format, Buffer.alloc(0), header, waterBed),
    body: body(format),
  });

const isEnveloped = ({ format }: Carriage): boolean => format.protocol !== "connect";
const isConnect = ({ format }: Carriage): boolean => format.protocol === "connect";
const isJson = ({ format }: Carriage): boolean => format.codec === "json";
const always = (): boolean => true;

const outcomeRows: readonly UnaryCallRow[] = [
  { name: "an answer", request: water("thanks") },
  { name: "an answer with fields of its own", request: water("tell more") },
  { name: "a long answer", request: water("answer at length") },
  {
    name: "an empty message",
    request: (format) => rpcRequest(format, encodeMessage(format, WaterBedRequestSchema, {}), [], waterBed),
  },
  { name: "text beyond ASCII", request: water("Wärme für 🌵") },
  ...Array.from({ length: 16 }, (_, index) => ({
    name: `an error with code ${String(index + 1)}`,
    request: water(`fail: ${String(index + 1)}: no water`),
    // Which code it is, no version of HTTP sees.
    only: ({ httpVersion }: Carriage) => httpVersion === "2" || index === 0,
  })),
  { name: "an error without a message", request: water("fail: 5: ") },
  { name: "an error with a message beyond ASCII", request: water("fail: 9: 100 % Wärme für 🌵\n") },
  { name: "an error that is none of Connect's", request: water("break") },
  { name: "a thing thrown that is no error", request: water("break with words") },
];

const headerRows: readonly UnaryCallRow[] = [
  { name: "a header of the client's own", request: water("", [["x-custom", "one"]]) },
  {
    name: "a header of the client's own, twice",
    request: water("", [
      ["x-custom", "one"],
      ["x-custom", "two"],
    ]),
  },
  { name: "a binary header", request: water("", [["x-custom-bin", "AAECAw"]]) },
  { name: "an empty header", request: water("", [["x-custom", ""]]) },
  { name: "a cookie", request: water("", [["cookie", "a=1; b=2"]]) },
];

const timeoutRows: readonly UnaryCallRow[] = [
  { name: "a deadline that is far", request: (format) => water("", timeout(format, 60_000))(format) },
  { name: "a deadline that passes", request: (format) => water("wait", timeout(format, 30))(format) },
  {
    name: "a deadline that has passed",
    request: (format) => water("wait", timeout(format, 0))(format),
    // A call that is over before its handler ran does not run, so there are no fields of the handler's.
    codeAlone: always,
  },
  { name: "a deadline that is no number", request: (format) => water("", [[timeoutName(format), "soon"]])(format) },
  { name: "a negative deadline", request: (format) => water("", [[timeoutName(format), "-1"]])(format) },
];

const compressionRows: readonly UnaryCallRow[] = [
  {
    name: "an answer that may be compressed with gzip",
    request: (format) => water("answer at length", [[acceptName(format), "gzip"]])(format),
  },
  {
    name: "an answer that may be compressed with Brotli",
    request: (format) => water("answer at length", [[acceptName(format), "br"]])(format),
  },
  {
    name: "a short answer that may be compressed",
    request: (format) => water("", [[acceptName(format), "gzip, br"]])(format),
  },
  {
    name: "an error that may be compressed",
    request: (format) => water(`fail: 5: ${"no water ".repeat(300)}`, [[acceptName(format), "gzip"]])(format),
  },
  { name: "a message in gzip", request: (format) => compressedWater(format, "gzip", gzipSync) },
  { name: "a message in Brotli", request: (format) => compressedWater(format, "br", brotliCompressSync) },
];

const limitRows: readonly UnaryCallRow[] = [
  { name: "a message just under the limit", request: water("w".repeat(9_900)) },
  {
    name: "a message that grows over the limit",
    request: (format) => compressedWater(format, "gzip", gzipSync, "w".repeat(20_000)),
  },
];

// What is wrong is said in the words of the reader that found it, which name the place.
const messageRows: readonly UnaryCallRow[] = [
  { name: "JSON that is none", request: raw(inFormat("{")), only: isJson, codeAlone: always },
  { name: "JSON with an unknown field", request: raw(inFormat('{"bed":"7","pots":3}')), only: isJson },
  { name: "JSON with a number for an int64", request: raw(inFormat('{"bed":7}')), only: isJson },
  { name: "no envelope", request: raw(() => Buffer.alloc(0)), only: isEnveloped, codeAlone: always },
  { name: "half an envelope", request: raw(() => Buffer.of(0, 0, 0)), only: isEnveloped, codeAlone: always },
  {
    name: "two messages",
    request: raw((format) => Buffer.concat([inFormat("{}")(format), inFormat("{}")(format)])),
    only: (carriage) => isEnveloped(carriage) && isJson(carriage),
    codeAlone: always,
  },
];

const getRows: readonly UnaryCallRow[] = [
  ...["thanks", "tell more", "fail: 5: no water", "break"].map((sensor) => ({
    name: `a GET that comes to "${sensor}"`,
    request: (format: WireFormat) => get(format, sensor),
    only: isConnect,
  })),
  {
    name: "a GET without a version",
    request: (format) => ({ httpMethod: "GET", path: `${getReading}?encoding=${format.codec}&message=`, header: [] }),
    only: isConnect,
    codeAlone: isJson,
  },
];

const wrongRows: readonly UnaryCallRow[] = [
  {
    name: "a GET of an RPC with side effects",
    request: () => ({ httpMethod: "GET", path: waterBed, header: [] }),
    httpStatusAlone: true,
  },
  {
    name: "a content type that is none of RPC's",
    request: (format) => ({ ...water("")(format), header: [["content-type", "text/plain"]] }),
    httpStatusAlone: true,
  },
];

/**
 * Every unary call that is sent to both servers. They agree in neither code nor words where a client's mistake is a fault
 * with connect-node, such as a message that is none, and where nothing is there, which connect-node says without a body.
 */
export const unaryCallTable: readonly UnaryCallRow[] = [
  ...outcomeRows,
  ...headerRows,
  ...timeoutRows,
  ...compressionRows,
  ...limitRows,
  ...messageRows,
  ...getRows,
  ...wrongRows,
];

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
