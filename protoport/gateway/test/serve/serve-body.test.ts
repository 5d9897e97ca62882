import { Code, ConnectError, createContextKey, type HandlerContext } from "@connectrpc/connect";
import { afterAll, beforeAll, beforeEach, describe, expect, test } from "vitest";
import type { AdmitRequest } from "../../src/index.ts";
// oxfmt-ignore
import { type Field, fieldValue, type Http1Connection, type HttpRequest, type HttpVersion, KeptConnections, openHttp1,
  reasonOf, startGreenhouse, type TestGreenhouse, type TestListenOptions, waterBedProcedure, within
} from "../../../testing/src/index.ts";
import {
  createJsonRpcGateway,
  maxJsonRpcBytes,
  jsonRpcErrors,
  jsonRpcPath,
} from "../../../testing/src/gateway/json-rpc.ts";

// A protocol in which the body names the RPC. The credential is checked before the body is read, the scope after.

const json: Field = ["content-type", "application/json"];
const gardener: Field = ["authorization", "Bearer gardener"];
const visitor: Field = ["authorization", "Bearer visitor"];
const id = 7;
const readMaxBytes = maxJsonRpcBytes / 2;
const subjectKey = createContextKey("nobody");

function bodyOf(params: object, method = waterBedProcedure.slice(1)): string {
  return JSON.stringify({ jsonrpc: "2.0", id, method, params });
}

function post(body: string, header: readonly Field[] = [json, gardener]): HttpRequest {
  return { httpMethod: "POST", path: jsonRpcPath, header, body: Buffer.from(body) };
}

/** A request, the response to it, and what `onResponse` and the steps before it saw. */
interface Case {
  readonly name: string;
  readonly request: HttpRequest;
  /** Default 200. */
  readonly httpStatus?: number;
  readonly response: object;
  /** The procedure that `onResponse` sees. */
  readonly procedure?: string;
  readonly code?: Code;
  /** The application's functions that were called, in order. */
  readonly ran: readonly string[];
}

function failure(code: number, message: string, responseId: number | null = id): object {
  return { jsonrpc: "2.0", id: responseId, error: { code, message } };
}

const { parse, invalidRequest, methodNotFound, server } = jsonRpcErrors;
const admitted = ["admit undefined"];
const authorized = [...admitted, `gate ${waterBedProcedure}`, `scope ${waterBedProcedure}`];
const named = { procedure: waterBedProcedure };

// oxfmt-ignore
const cases: readonly Case[] = [
  { name: "a call", request: post(bodyOf({ bed: "7", liters: 3 })),
    response: { jsonrpc: "2.0", id, result: { bed: "7", liters: 3 } }, ...named, ran: [...authorized, "handler"] },
  { name: "a call without a credential", request: post(bodyOf({}), [json]), httpStatus: 401,
    response: failure(server, "who are you", null), code: Code.Unauthenticated, ran: admitted },
  { name: "a call whose caller lacks the scope", request: post(bodyOf({}), [json, visitor]),
    response: failure(server, "visitors may not water"), ...named, code: Code.PermissionDenied, ran: authorized },
  { name: "a call that the handler fails", request: post(bodyOf({ note: "dry" })), response: failure(server, "dry"),
    ...named, code: Code.Aborted, ran: [...authorized, "handler"] },
  { name: "a call whose message is invalid", request: post(bodyOf({ liters: "many" })),
    response: failure(server, 'liters: "many" is not an int32'), ...named, code: Code.InvalidArgument,
    ran: [...admitted, `gate ${waterBedProcedure}`] },
  { name: "a call whose deadline passes",
    request: post(bodyOf({ note: "late" }), [json, gardener, ["x-server-timeout", "0.02"]]),
    response: failure(server, "the operation timed out"), ...named, code: Code.DeadlineExceeded,
    ran: [...authorized, "handler"] },
  { name: "a call whose deadline is malformed",
    request: post(bodyOf({}), [json, gardener, ["x-server-timeout", "soon"]]),
    response: failure(server, "protocol error: invalid server timeout value: soon"), ...named,
    code: Code.InvalidArgument, ran: admitted },
  { name: "a method that does not exist", request: post(bodyOf({}, "a.B/C")),
    response: failure(methodNotFound, "there is no such method"), code: Code.Unimplemented, ran: admitted },
  { name: "a body that is not JSON", request: post("{"), response: failure(parse, "the body is not JSON", null),
    code: Code.InvalidArgument, ran: admitted },
  { name: "a request without a body", request: { httpMethod: "POST", path: jsonRpcPath, header: [json, gardener] },
    response: failure(parse, "the body is not JSON", null), code: Code.InvalidArgument, ran: admitted },
  { name: "a body that is too large", request: post(bodyOf({ note: "x".repeat(maxJsonRpcBytes) })), response: failure(
      invalidRequest,
      `the message is larger than ${maxJsonRpcBytes} bytes; to accept it, set the server option readMaxBytes`,
      null,
    ), code: Code.ResourceExhausted, ran: admitted },
  { name: "a message that is larger than the RPC allows", request: post(bodyOf({ note: "x".repeat(readMaxBytes) })),
    response: failure(
      server,
      `the message is larger than ${readMaxBytes} bytes; to accept it, set the server option readMaxBytes`,
    ), ...named, code: Code.ResourceExhausted, ran: [...admitted, `gate ${waterBedProcedure}`] },
  { name: "another content type", request: post(bodyOf({}), [["content-type", "text/plain"], gardener]),
    response: failure(invalidRequest, "the content type is not application/json", null), code: Code.InvalidArgument,
    ran: admitted },
];

const servers: readonly { name: string; version: HttpVersion; listen: TestListenOptions }[] = [
  { name: "HTTP/1.1", version: "1.1", listen: {} },
  { name: "HTTP/2", version: "2", listen: {} },
  { name: "a handler in node:http2", version: "2", listen: { http2: "mounted" } },
];

const ran: string[] = [];

/** Starts a greenhouse whose visitors have only the scope to read. */
async function startGuarded(
  listen: TestListenOptions,
  waterBed: (note: string, context: HandlerContext) => void | Promise<void>,
): Promise<TestGreenhouse> {
  return await startGreenhouse(
    {
      waterBed: async ({ bed, liters, note }, context) => {
        ran.push("handler");
        await waterBed(note, context);
        return { bed, liters };
      },
    },
    {
      readMaxBytes,
      admit: ({ procedure, authorization, contextValues }: AdmitRequest) => {
        ran.push(`admit ${procedure}`);
        if (authorization === null) {
          throw new ConnectError("who are you", Code.Unauthenticated, { "www-authenticate": "Bearer" });
        }
        contextValues.set(subjectKey, authorization.slice("Bearer ".length));
      },
      requestGate: ({ service, method }) => void ran.push(`gate /${service.typeName}/${method.name}`),
      interceptors: [
        (next) => (request) => {
          const { service, method, contextValues } = request;
          ran.push(`scope /${service.typeName}/${method.name}`);
          if (contextValues.get(subjectKey) === "visitor") {
            throw new ConnectError("visitors may not water", Code.PermissionDenied);
          }
          return next(request);
        },
      ],
    },
    listen,
    createJsonRpcGateway,
  );
}

beforeEach(() => {
  ran.length = 0;
});

describe.each(servers)("a JSON-RPC gateway over $name", ({ version, listen }) => {
  let greenhouse: TestGreenhouse;
  let connections: KeptConnections;

  beforeAll(async () => {
    connections = new KeptConnections();
    greenhouse = await startGuarded(listen, (note) => {
      if (note === "dry") throw new ConnectError("dry", Code.Aborted);
      if (note === "late") return new Promise(() => {});
    });
  });

  afterAll(async () => {
    connections[Symbol.dispose]();
    await greenhouse[Symbol.asyncDispose]();
  });

  test.each(cases)(
    "gives $name a JSON response",
    async ({ request, httpStatus = 200, response, procedure, code, ...wanted }) => {
      const before = greenhouse.completedRequests.length;
      const actual = await connections.exchange(greenhouse.address, version, request);
      expect(actual.httpStatus).toBe(httpStatus);
      expect(fieldValue(actual.header, "content-type")).toBe("application/json");
      expect(JSON.parse(String(actual.body))).toEqual(response);
      const reported = await greenhouse.completed(before + 1);
      expect(reported).toMatchObject({ procedure, protocol: "json-rpc", httpRoute: jsonRpcPath, httpStatus });
      expect(reported.error?.code).toBe(code);
      expect(greenhouse.completedRequests).toHaveLength(before + 1);
      expect(ran).toEqual(wanted.ran);
    },
  );

  test("refuses another HTTP method and lists POST in Allow", async () => {
    const response = await connections.exchange(greenhouse.address, version, {
      httpMethod: "GET",
      path: jsonRpcPath,
      header: [gardener],
    });
    expect(response.httpStatus).toBe(405);
    expect(fieldValue(response.header, "allow")).toBe("POST");
  });
});

/** Sends a call's header and the start of its body. */
function beginCall(connection: Http1Connection, body: string, sent: number, header: readonly Field[]): void {
  const length: Field = ["content-length", String(body.length)];
  connection.request({ ...post(body.slice(0, sent), [json, length, ...header]) });
}

describe("a request whose body names the RPC", () => {
  test("is refused without a credential before its body arrives", async () => {
    await using greenhouse = await startGuarded({}, () => {});
    using connection = await openHttp1(greenhouse.address);
    beginCall(connection, bodyOf({}), 0, []);
    const response = await connection.readResponse();
    expect(response.httpStatus).toBe(401);
    expect(fieldValue(response.header, "www-authenticate")).toBe("Bearer");
  });

  test("starts its timeout only when the RPC is known", async () => {
    await using greenhouse = await startGuarded({}, () => {});
    using connection = await openHttp1(greenhouse.address);
    const body = bodyOf({});
    beginCall(connection, body, 5, [gardener, ["x-server-timeout", "0.001"]]);
    // The wait is longer than the timeout.
    await new Promise((resolve) => setTimeout(resolve, 10));
    expect(greenhouse.completedRequests).toEqual([]);
    connection.write(body.slice(5));
    await connection.readResponse();
    expect(await greenhouse.completed(1)).toMatchObject(named);
  });

  test("ends without an RPC when its client disconnects during the body", async () => {
    await using greenhouse = await startGuarded({}, () => {});
    using connection = await openHttp1(greenhouse.address);
    beginCall(connection, bodyOf({}), 5, [gardener]);
    await expect.poll(() => ran).toEqual(admitted);
    connection.socket.resetAndDestroy();
    const reported = await greenhouse.completed(1);
    expect(reported).toMatchObject({ procedure: undefined, httpStatus: 0, error: { code: Code.Canceled } });
    expect(ran).toEqual(admitted);
  });

  test("aborts the signal of its handler when its client disconnects", async () => {
    const begun = Promise.withResolvers<HandlerContext>();
    await using greenhouse = await startGuarded({}, (_, context) => {
      begun.resolve(context);
      return new Promise(() => {});
    });
    using connection = await openHttp1(greenhouse.address);
    connection.request(post(bodyOf({})));
    const { signal } = await within(begun.promise, "the handler");
    connection.socket.resetAndDestroy();
    expect(ConnectError.from(await reasonOf(signal)).code).toBe(Code.Canceled);
    expect(await greenhouse.completed(1)).toMatchObject({ ...named, httpStatus: 0, error: { code: Code.Canceled } });
  });
});
