import type { GatewayErrorCode, Protocol } from "@protoport/gateway";
import type { AuthErrorCode } from "@protoport/auth/inputs";
import type { LogErrorCode } from "@protoport/telemetry/logs";
import type { PlantErrorCode } from "../../src/service/index.ts";
// oxfmt-ignore
import { decodeBase64Parts, decodeEnvelopes, type Field, framing, type HttpResponse, type WireFormat
} from "@protoport/testing";

/** A situation's outcome, whatever the protocol. */
export interface Want {
  readonly code: keyof typeof codes;
  /** The error's exact message, or `undefined` for "ok". */
  readonly message?: string;
  /** The error's identifier, which is only in the log and in the error object, or `undefined` for "ok". */
  readonly errorCode?: GatewayErrorCode | AuthErrorCode | LogErrorCode | PlantErrorCode;
  /** The message in a successful response, in JSON and as its bytes; by default DeletePlant's empty one. */
  readonly response?: { readonly json: string; readonly proto: readonly number[] };
  /** The error's fields, in the header or trailer depending on the protocol. */
  readonly fields?: Readonly<Record<string, string>>;
}

/** A response as the tests compare it: every byte except the fields in which HTTP itself varies. */
export interface ComparedResponse {
  readonly httpStatus: number;
  readonly header: Readonly<Record<string, string>>;
  readonly trailer: Readonly<Record<string, string>>;
  /** The messages in the body, at most one: JSON, or a binary message as one character per byte. */
  readonly messages: readonly string[];
}

/**
 * The gRPC codes, with their numbers and their HTTP statuses in the Connect protocol (its specification, "Error
 * codes").
 */
// oxfmt-ignore
export const codes = {
  ok: { number: 0, httpStatus: 200 }, canceled: { number: 1, httpStatus: 499 }, unknown: { number: 2, httpStatus: 500 },
  invalid_argument: { number: 3, httpStatus: 400 }, deadline_exceeded: { number: 4, httpStatus: 504 },
  not_found: { number: 5, httpStatus: 404 }, already_exists: { number: 6, httpStatus: 409 },
  permission_denied: { number: 7, httpStatus: 403 }, resource_exhausted: { number: 8, httpStatus: 429 },
  failed_precondition: { number: 9, httpStatus: 400 }, aborted: { number: 10, httpStatus: 409 },
  out_of_range: { number: 11, httpStatus: 400 }, unimplemented: { number: 12, httpStatus: 501 },
  internal: { number: 13, httpStatus: 500 }, unavailable: { number: 14, httpStatus: 503 },
  data_loss: { number: 15, httpStatus: 500 }, unauthenticated: { number: 16, httpStatus: 401 } } as const;

/** Returns the response that the protocol, or for REST the plant store's contract, requires for an outcome. */
export const expectedResponse = (format: WireFormat, want: Want): ComparedResponse =>
  want.code === "ok" ? expectedSuccess(format, want) : expectedError(format, want);

export function expectedRecord(
  httpStatus: number,
  { error, message }: { readonly error: number; readonly message: string },
): ComparedResponse {
  const header = { "content-type": "application/json" };
  return { httpStatus, header, trailer: {}, messages: [JSON.stringify({ error, message })] };
}

/** Returns a received response in the form of {@link expectedResponse}. */
export function actualResponse(format: WireFormat, response: HttpResponse): ComparedResponse {
  const { httpStatus, header, trailer, body } = response;
  const received = { httpStatus, header: toRecord(header), trailer: toRecord(trailer) };
  const encoding = received.header["content-type"]?.endsWith("json") === false ? "latin1" : "utf8";
  if (!hasEnvelopes(format)) return { ...received, messages: [body.toString(encoding)] };
  const envelopes = decodeEnvelopes(format.name === "grpc-web-text" ? decodeBase64Parts(body) : body);
  const messages = envelopes.filter(({ flags }) => flags === 0).map(({ bytes }) => bytes.toString(encoding));
  const last = envelopes.find(({ flags }) => flags === 0x80);
  return { ...received, messages, trailer: last === undefined ? received.trailer : toRecord(webFields(last.bytes)) };
}

function hasEnvelopes({ protocol }: WireFormat): boolean {
  return protocol === "grpc" || protocol === "grpc-web";
}

function expectedSuccess(format: WireFormat, { response }: Want): ComparedResponse {
  if (format.protocol === "rest" && response === undefined)
    return { httpStatus: 204, header: {}, trailer: {}, messages: [""] };
  if (format.protocol === "mcp") {
    const text = response?.json ?? "{}";
    return toolResult([{ type: "text", text }], { structuredContent: JSON.parse(text) });
  }
  return {
    httpStatus: 200,
    header: { "content-type": format.contentType ?? "application/json" },
    trailer: hasEnvelopes(format) ? { "grpc-status": "0" } : {},
    messages: [format.codec === "proto" ? String.fromCharCode(...(response?.proto ?? [])) : (response?.json ?? "{}")],
  };
}

function expectedError(format: WireFormat, want: Want): ComparedResponse {
  return errorResponses[format.protocol](want, format.contentType ?? "");
}

const errorResponses: Readonly<Record<Protocol, (want: Want, contentType: string) => ComparedResponse>> = {
  connect: ({ code, message = "", fields }) => {
    const header = { "content-type": "application/json", ...fields };
    return { httpStatus: codes[code].httpStatus, header, trailer: {}, messages: [JSON.stringify({ code, message })] };
  },
  // One header section, which gRPC over HTTP/2 calls Trailers-Only.
  grpc: (want, contentType) => {
    const header = { "content-type": contentType, ...grpcStatusOf(want) };
    return { httpStatus: 200, header, trailer: {}, messages: [] };
  },
  // The trailer is in the body.
  "grpc-web": (want, contentType) => {
    return { httpStatus: 200, header: { "content-type": contentType }, trailer: grpcStatusOf(want), messages: [] };
  },
  mcp: ({ code, message = "", errorCode, fields }) => {
    // HTTP and JSON-RPC respond to a refused credential with an error. The error has no id if the body has not been
    // read.
    const beforeBody = ["ERR_VERIFICATION_UNAVAILABLE", "ERR_RATE_LIMITED"];
    const isRead = code !== "unauthenticated" && !beforeBody.includes(errorCode ?? "");
    if (!isRead || code === "permission_denied") {
      const { httpStatus } = codes[code];
      const error = { code: httpStatus < 500 ? -32_600 : -32_603, message };
      return { ...toolResponse({ ...(isRead && { id: 1 }), error }, fields), httpStatus };
    }
    const name = code === "canceled" ? "CANCELLED" : code.toUpperCase();
    return toolResult([{ type: "text", text: `${name}: ${message}` }], { isError: true }, fields);
  },
  rest: ({ code, message = "", fields }) => {
    const { number: error } = codes[code];
    const header = { "content-type": "application/json", ...fields };
    return { httpStatus: 400, header, trailer: {}, messages: [JSON.stringify({ error, message })] };
  },
};

function toolResult(content: readonly object[], members: object, fields?: Want["fields"]): ComparedResponse {
  const serverInfo = { name: "plantstore", title: "Plant Store", version: "1.0.0" };
  const meta = { "io.modelcontextprotocol/serverInfo": serverInfo };
  return toolResponse({ id: 1, result: { content, ...members, resultType: "complete", _meta: meta } }, fields);
}

function toolResponse(members: object, fields: Want["fields"]): ComparedResponse {
  const header = { "content-type": "application/json", ...fields };
  return { httpStatus: 200, header, trailer: {}, messages: [JSON.stringify({ jsonrpc: "2.0", ...members })] };
}

function grpcStatusOf({ code, message = "", fields = {} }: Want): Record<string, string> {
  const status = { "grpc-status": String(codes[code].number), "grpc-message": message };
  return { ...status, ...fields, ...pushbackOf(fields) };
}

// gRFC A6: gRPC clients wait for the milliseconds in this field.
function pushbackOf({ "retry-after": seconds }: Readonly<Record<string, string>>): Record<string, string> {
  return seconds === undefined ? {} : { "grpc-retry-pushback-ms": `${seconds}000` };
}

function toRecord(fields: readonly Field[]): Record<string, string> {
  const record: Record<string, string> = {};
  for (const [name, value] of fields) {
    if (framing.has(name) || isGeneratedRequestId(name, value)) continue;
    const text = readable(name, value);
    record[name] = record[name] === undefined ? text : `${record[name]}, ${text}`;
  }
  return record;
}

// Not compared, because it is random. test/server/request-id.test.ts covers which responses have one.
function isGeneratedRequestId(name: string, value: string): boolean {
  return name === "x-request-id" && /^[0-9a-f]{16}-[0-9a-z]+$/.test(value);
}

// Decodes the percent-encoding in a gRPC message.
function readable(name: string, value: string): string {
  return name === "grpc-message" ? decodeURIComponent(value) : value;
}

function webFields(bytes: Buffer): Field[] {
  const lines = bytes.toString("latin1").split("\r\n").slice(0, -1);
  return lines.map((line) => [
    line.slice(0, line.indexOf(":")).toLowerCase(),
    line.slice(line.indexOf(":") + 1).trim(),
  ]);
}
