import type { Protocol } from "../../../gateway/src/index.ts";
import { decodeEnvelopes } from "./envelope.ts";
import { fieldValue, type Field, type HttpResponse } from "../http/exchange.ts";
import type { WireFormat } from "./wire-format.ts";

/** A call's outcome, for every protocol. Code 0 is OK, and any other code is a gRPC code. */
export type Outcome = { readonly code: number; readonly message: string };

/** Returns the outcome in a response, as its protocol encodes it. Throws if the response is not valid. */
export const readOutcome = (format: WireFormat, response: HttpResponse): Outcome =>
  readers[format.protocol](response, format);

const readers: Readonly<Record<Protocol, (response: HttpResponse, format: WireFormat) => Outcome>> = {
  connect: readConnect,
  grpc: (response, format) => readGrpc(response, format, response.trailer),
  "grpc-web": (response, format) => readGrpc(response, format, readWebTrailer(format, response)),
  mcp: readMcp,
  rest: readRest,
};

/** Reads the gRPC or gRPC-Web status. Both protocols respond with HTTP 200 to every call. */
function readGrpc(response: HttpResponse, format: WireFormat, trailer: readonly Field[]): Outcome {
  if (response.httpStatus !== 200) throw new Error(`no response of ${format.name}: ${describe(response)}`);
  // If the response has a body, the status is in the trailer.
  return readGrpcStatus(response.body.byteLength === 0 ? [...response.header, ...trailer] : trailer);
}

/** Returns the gRPC-Web trailers from the body's last envelope. A response without a body has no trailers. */
export function readWebTrailer(format: WireFormat, response: HttpResponse): Field[] {
  const body = format.name === "grpc-web-text" ? decodeBase64Parts(response.body) : response.body;
  const last = decodeEnvelopes(body).find((envelope) => (envelope.flags & 0x80) !== 0);
  if (last === undefined) return [];
  return last.bytes
    .toString("latin1")
    .split("\r\n")
    .filter((line) => line !== "")
    .map((line) => [line.slice(0, line.indexOf(":")).toLowerCase(), line.slice(line.indexOf(":") + 1).trim()]);
}

/** Connect's code names with their numbers (https://connectrpc.com/docs/protocol, "Error codes"). */
// oxfmt-ignore
const connectCodes: Readonly<Record<string, number>> = {
  canceled: 1, unknown: 2, invalid_argument: 3, deadline_exceeded: 4, not_found: 5, already_exists: 6,
  permission_denied: 7, resource_exhausted: 8, failed_precondition: 9, aborted: 10, out_of_range: 11, unimplemented: 12,
  internal: 13, unavailable: 14, data_loss: 15, unauthenticated: 16,
};

/** Decodes gRPC-Web text, which may be several base64 strings, each with its own padding. */
export function decodeBase64Parts(body: Buffer): Buffer {
  const parts = body.toString("latin1").match(/[^=]+=*/g) ?? [];
  return Buffer.concat(parts.map((part) => Buffer.from(part, "base64")));
}

function readRest(response: HttpResponse): Outcome {
  if (response.httpStatus === 204) return { code: 0, message: "" };
  const record: unknown = JSON.parse(response.body.toString("utf8"));
  if (!isErrorRecord(record)) throw new Error(`no error record: ${describe(response)}`);
  return { code: record.error, message: record.message };
}

/** Reads a tool result or a protocol error. A tool result for an error is a text with the code's name. */
function readMcp(response: HttpResponse): Outcome {
  const { result, error }: McpResponse = JSON.parse(response.body.toString("utf8"));
  if (error !== undefined) return { code: response.httpStatus === 401 ? 16 : 7, message: error.message };
  if (result?.isError !== true) return { code: 0, message: "" };
  const [name = "", message = ""] = (result.content[0]?.text ?? "").split(/: (.*)/s);
  return { code: connectCodes[name === "CANCELLED" ? "canceled" : name.toLowerCase()] ?? -1, message };
}

interface McpResponse {
  readonly result?: { readonly content: readonly { readonly text: string }[]; readonly isError?: boolean };
  readonly error?: { readonly message: string };
}

function readConnect(response: HttpResponse): Outcome {
  if (response.httpStatus === 200) return { code: 0, message: "" };
  const error: unknown = JSON.parse(response.body.toString("utf8"));
  const code = isConnectError(error) ? connectCodes[error.code] : undefined;
  if (!isConnectError(error) || code === undefined) throw new Error(`no Connect error: ${describe(response)}`);
  return { code, message: error.message ?? "" };
}

function readGrpcStatus(fields: readonly Field[]): Outcome {
  const status = fieldValue(fields, "grpc-status");
  if (status === undefined || !/^\d{1,2}$/.test(status)) throw new Error(`no grpc-status: ${JSON.stringify(fields)}`);
  return { code: Number(status), message: decodeURIComponent(fieldValue(fields, "grpc-message") ?? "") };
}

function isErrorRecord(value: unknown): value is { error: number; message: string } {
  if (typeof value !== "object" || value === null || !("error" in value) || !("message" in value)) return false;
  return typeof value.error === "number" && typeof value.message === "string";
}

function isConnectError(value: unknown): value is { code: string; message?: string } {
  if (typeof value !== "object" || value === null || !("code" in value) || typeof value.code !== "string") return false;
  return !("message" in value) || typeof value.message === "string";
}

const describe = (response: HttpResponse): string =>
  `${String(response.httpStatus)} ${JSON.stringify(response.header)} ${response.body.toString("latin1")}`;
