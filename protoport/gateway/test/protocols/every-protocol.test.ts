import { Code, ConnectError } from "@connectrpc/connect";
import { describe, expect, test } from "vitest";
import { GreenhouseService } from "../../../examples/gen/greenhouse/v1/greenhouse_pb.ts";
import { PhotoService } from "../../../examples/gen/greenhouse/v1/photos_pb.ts";
import { createMcp } from "../../src/mcp/index.ts";
import { compileRoutes } from "../../src/serve/index.ts";
import type { Protocol } from "../../src/index.ts";
// oxfmt-ignore
import { encodeEnvelope, type Field, fieldValue, type HttpRequest, type HttpVersion, KeptConnections, shared,
  startGreenhouse, wiresWithTools } from "@protoport/testing";

// Each protocol's exact response in the same situations. Adding a protocol without its cases does not compile.

const readMaxBytes = 64;
const timeoutMs = 20;

/** A situation that every protocol has. */
const situations = ["success", "handlerError", "refusal", "deadline", "tooLarge", "stream"] as const;
type Situation = (typeof situations)[number];

/** The unary call's message in each situation. */
const messages: Readonly<Record<Exclude<Situation, "stream">, string>> = {
  success: '{"liters":3}',
  handlerError: '{"note":"dry"}',
  refusal: '{"liters":3}',
  deadline: '{"note":"late"}',
  tooLarge: `{"note":"${"x".repeat(readMaxBytes)}"}`,
};

/** A response on the wire, with the {@link comparedFields}. */
interface Response {
  readonly httpStatus: number;
  readonly header: Readonly<Record<string, string>>;
  readonly body: string;
  readonly trailer?: Readonly<Record<string, string>>;
}

/** A protocol's requests, and its response in each situation. */
interface ProtocolCases {
  readonly httpVersion: HttpVersion;
  readonly call: (message: string) => HttpRequest;
  readonly stream: () => HttpRequest;
  /** The field that sets a deadline of {@link timeoutMs}. */
  readonly timeout: Field;
  readonly responses: Readonly<Record<Situation, Response>>;
}

const service = "/greenhouse.v1.GreenhouseService";
const closed = "the greenhouse is closed";
const tooLarge = `the message is larger than ${readMaxBytes} bytes; to accept it, set the server option readMaxBytes`;
const timedOut = "the operation timed out";

/** Returns a body that consists of envelopes. */
const envelopes = (...parts: readonly (readonly [flags: number, text: string])[]): string =>
  Buffer.concat(parts.map(([flags, text]) => encodeEnvelope(flags, Buffer.from(text)))).toString("latin1");

function post(path: string, contentType: string, body: string): HttpRequest {
  const header: readonly Field[] = [["content-type", contentType]];
  return { httpMethod: "POST", path: service + path, header, body: Buffer.from(body, "latin1") };
}

const json = { "content-type": "application/json" };
const twoReadings = [
  [0, '{"sensor":"a","degreesCelsius":1}'],
  [0, '{"sensor":"a","degreesCelsius":2}'],
] as const;

function connectError(httpStatus: number, code: string, message: string): Response {
  return { httpStatus, header: json, body: JSON.stringify({ code, message }) };
}

function grpcError(code: Code, message: string): Response {
  const status = { "grpc-status": String(code), "grpc-message": encodeURI(message) };
  return { httpStatus: 200, header: { "content-type": "application/grpc+json", ...status }, body: "" };
}

const grpcWebHeader = { "content-type": "application/grpc-web+json" };

function grpcWebError(code: Code, message: string): Response {
  const trailer = `grpc-message: ${encodeURI(message)}\r\ngrpc-status: ${code}\r\n`;
  return { httpStatus: 200, header: grpcWebHeader, body: envelopes([0x80, trailer]) };
}

function restError(httpStatus: number, code: Code, status: string, message: string): Response {
  return { httpStatus, header: json, body: JSON.stringify({ code, status, message, details: [] }) };
}

function callTool(method: string, message: string): HttpRequest {
  const params = `{"name":"greenhouse_v1_GreenhouseService_${method}","arguments":${message}}`;
  const body = `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":${params}}`;
  return { ...post("", "application/json", body), path: "/mcp" };
}

/** Returns the response with a result's members. */
function mcpResult(members: string): Response {
  return { httpStatus: 200, header: json, body: `{"jsonrpc":"2.0","id":1,"result":{${members}}}` };
}

const mcpError = (code: string, message: string): Response =>
  mcpResult(`"content":${JSON.stringify([{ type: "text", text: `${code}: ${message}` }])},"isError":true`);

const readings = `{"messages":[${twoReadings.map(([, text]) => text).join(",")}]}`;
const twoMessages = `"content":${JSON.stringify([{ type: "text", text: readings }])},"structuredContent":${readings}`;

// oxfmt-ignore
const protocolCases: Readonly<Record<Protocol, ProtocolCases>> = {
  connect: { httpVersion: "1.1", call: (message) => post("/WaterBed", "application/json", message),
    stream: () => post("/WatchReadings", "application/connect+json", envelopes([0, '{"sensor":"a"}'])),
    timeout: ["connect-timeout-ms", String(timeoutMs)],
    responses: { success: { httpStatus: 200, header: json, body: '{"liters":3}' },
      handlerError: connectError(409, "aborted", "dry"), refusal: connectError(403, "permission_denied", closed),
      deadline: connectError(504, "deadline_exceeded", timedOut),
      tooLarge: connectError(429, "resource_exhausted", tooLarge),
      stream: { httpStatus: 200, header: { "content-type": "application/connect+json" },
        body: envelopes(...twoReadings, [2, "{}"]) } } },
  grpc: { httpVersion: "2", call: (message) => post("/WaterBed", "application/grpc+json", envelopes([0, message])),
    stream: () => post("/WatchReadings", "application/grpc+json", envelopes([0, '{"sensor":"a"}'])),
    timeout: ["grpc-timeout", `${timeoutMs}m`],
    responses: { success: { httpStatus: 200, header: { "content-type": "application/grpc+json" },
        body: envelopes([0, '{"liters":3}']), trailer: { "grpc-status": "0" } },
      handlerError: grpcError(Code.Aborted, "dry"), refusal: grpcError(Code.PermissionDenied, closed),
      deadline: grpcError(Code.DeadlineExceeded, timedOut), tooLarge: grpcError(Code.ResourceExhausted, tooLarge),
      stream: { httpStatus: 200, header: { "content-type": "application/grpc+json" }, body: envelopes(...twoReadings),
        trailer: { "grpc-status": "0" } } } },
  "grpc-web": { httpVersion: "1.1",
    call: (message) => post("/WaterBed", "application/grpc-web+json", envelopes([0, message])),
    stream: () => post("/WatchReadings", "application/grpc-web+json", envelopes([0, '{"sensor":"a"}'])),
    timeout: ["grpc-timeout", `${timeoutMs}m`],
    responses: { success: { httpStatus: 200, header: grpcWebHeader,
        body: envelopes([0, '{"liters":3}'], [0x80, "grpc-status: 0\r\n"]) },
      handlerError: grpcWebError(Code.Aborted, "dry"), refusal: grpcWebError(Code.PermissionDenied, closed),
      deadline: grpcWebError(Code.DeadlineExceeded, timedOut), tooLarge: grpcWebError(Code.ResourceExhausted, tooLarge),
      stream: { httpStatus: 200, header: grpcWebHeader,
        body: envelopes(...twoReadings, [0x80, "grpc-status: 0\r\n"]) } } },
  mcp: { httpVersion: "1.1", call: (message) => callTool("WaterBed", message),
    stream: () => callTool("WatchReadings", '{"sensor":"a"}'), timeout: ["x-server-timeout", String(timeoutMs / 1000)],
    responses:
    { success: mcpResult('"content":[{"type":"text","text":"{\\"liters\\":3}"}],"structuredContent":{"liters":3}'),
      handlerError: mcpError("ABORTED", "dry"),
      refusal: { httpStatus: 403, header: json,
        body: JSON.stringify({ jsonrpc: "2.0", error: { code: -32600, message: closed } }) },
      deadline: mcpError("DEADLINE_EXCEEDED", timedOut), tooLarge: mcpError("RESOURCE_EXHAUSTED", tooLarge),
      stream: { ...mcpResult(""), header: { "content-type": "text/event-stream" },
        body: `data: ${mcpResult(twoMessages).body}\n\n` } } },
  rest: {
    httpVersion: "1.1",
    call: (message) => ({ ...post("", "application/json", message), path: "/beds/7:water" }),
    // In REST, only RPCs with a rule are available, so this is the RPC that streams bytes.
    stream: () => ({ httpMethod: "GET", path: "/photos/a", header: [] }),
    timeout: ["x-server-timeout", String(timeoutMs / 1000)],
    responses: {
      success: { httpStatus: 200, header: json, body: '{"liters":3}' },
      handlerError: restError(409, Code.Aborted, "ABORTED", "dry"),
      refusal: restError(403, Code.PermissionDenied, "PERMISSION_DENIED", closed),
      deadline: restError(504, Code.DeadlineExceeded, "DEADLINE_EXCEEDED", timedOut),
      tooLarge: restError(413, Code.ResourceExhausted, "RESOURCE_EXHAUSTED", tooLarge),
      stream: { httpStatus: 200, header: { "content-type": "image/png" }, body: "12" },
    },
  },
};

const cases = Object.entries(protocolCases).flatMap(([protocol, protocolCase]) =>
  situations.map((situation) => ({ protocol, situation, protocolCase })),
);

/** The header and trailer fields that depend on the protocol. */
const comparedFields = ["content-type", "grpc-status", "grpc-message"];

const toRecord = (fields: readonly Field[]): Record<string, string> =>
  Object.fromEntries(
    comparedFields.flatMap((name) => {
      const value = fieldValue(fields, name);
      return value === undefined ? [] : [[name, value]];
    }),
  );

describe("every protocol", () => {
  const connections = shared(() => new KeptConnections());
  const greenhouse = shared(() =>
    startGreenhouse(
      {},
      {
        readMaxBytes,
        mcp: createMcp({ tools: ["greenhouse.v1.*"] }),
        routes: (router) => {
          router.service(GreenhouseService, {
            waterBed: ({ liters, note }) => {
              if (note === "dry") throw new ConnectError("dry", Code.Aborted);
              return note === "late" ? new Promise(() => {}) : { liters };
            },
            async *watchReadings({ sensor }) {
              for (const degreesCelsius of [1, 2]) yield { sensor, degreesCelsius };
            },
          });
          router.service(PhotoService, {
            async *downloadPhoto() {
              for (const text of ["1", "2"]) yield { contentType: "image/png", data: Buffer.from(text) };
            },
          });
        },
        admit: ({ header }) => {
          if (header.get("x-closed") !== null) throw new ConnectError(closed, Code.PermissionDenied);
        },
      },
    ),
  );

  test("has test cases", () => {
    const options = { routes: () => {}, mcp: createMcp({ tools: [] }) };
    const { protocols } = compileRoutes(options, { compressions: [] }, () => {});
    expect(protocols.all.map(({ name }) => name).toSorted()).toEqual(Object.keys(protocolCases).toSorted());
  });

  test("has a wire format in the contract tests", () => {
    const inContract = new Set(wiresWithTools.map(({ format }) => format.protocol));
    expect([...inContract].toSorted()).toEqual(Object.keys(protocolCases).toSorted());
  });

  test.each(cases)("$protocol responds as specified ($situation)", async ({ protocol, situation, protocolCase }) => {
    const { httpVersion, call, stream, timeout, responses } = protocolCase;
    const request = situation === "stream" ? stream() : call(messages[situation]);
    const added: Partial<Record<Situation, Field>> = { refusal: ["x-closed", "1"], deadline: timeout };
    const field = added[situation];
    const header = field === undefined ? request.header : [...request.header, field];
    const before = greenhouse.completedRequests.length;
    const response = await connections.exchange(greenhouse.address, httpVersion, { ...request, header });
    expect({
      httpStatus: response.httpStatus,
      header: toRecord(response.header),
      body: response.body.toString("latin1"),
      trailer: toRecord(response.trailer),
    }).toEqual({ trailer: {}, ...responses[situation] });
    // Hooks, logs and metrics get the protocol.
    expect((await greenhouse.completed(before + 1)).protocol).toBe(protocol);
  });
});
