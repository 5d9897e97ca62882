import { Code, ConnectError, createContextKey, type HandlerContext } from "@connectrpc/connect";
import { beforeEach, describe, expect, test } from "vitest";
import { createMcp } from "../../src/mcp/index.ts";
// oxfmt-ignore
import { type Field, fieldValue, type Http1Connection, type HttpRequest, type HttpVersion, KeptConnections, openHttp1,
  reasonOf, startGreenhouse, type TestGreenhouse, type TestListenOptions, waterBedProcedure, within
} from "@protoport/testing";
import { call, raw, readMaxBytes, withHeader } from "../mcp/cases.ts";

// In MCP, the body names the RPC. The credential is checked before the body is read, the scope after.

const gardener: Field = ["authorization", "Bearer gardener"];
const visitor: Field = ["authorization", "Bearer visitor"];
const subjectKey = createContextKey("nobody");
const admitted = ["admit undefined"];
const gated = [...admitted, `gate ${waterBedProcedure}`];
const authorized = [...gated, `scope ${waterBedProcedure}`];
const handled = [...authorized, "handler"];
const procedure = waterBedProcedure;

/** A request, what `onResponse` sees, and the application's functions that were called, in order. */
interface Case {
  readonly name: string;
  readonly request: HttpRequest;
  readonly procedure?: string;
  readonly code?: Code;
  readonly ran: readonly string[];
}

// oxfmt-ignore
const cases: readonly Case[] = [
  { name: "a call", request: call({}, [gardener]), procedure, ran: handled },
  { name: "a call without a credential", request: call({}), code: Code.Unauthenticated, ran: admitted },
  { name: "a call whose caller lacks the scope", request: call({}, [visitor]), procedure,
    code: Code.PermissionDenied, ran: authorized },
  { name: "a call that the handler fails", request: call({ note: "dry" }, [gardener]), procedure, code: Code.Aborted,
    ran: handled },
  { name: "a call whose message is invalid", request: call({ liters: "many" }, [gardener]), procedure,
    code: Code.InvalidArgument, ran: gated },
  { name: "a call whose deadline passes", request: call({ note: "late" }, [gardener, ["x-server-timeout", "0.02"]]),
    procedure, code: Code.DeadlineExceeded, ran: handled },
  { name: "a call whose deadline is malformed", request: call({}, [gardener, ["x-server-timeout", "soon"]]), procedure,
    code: Code.InvalidArgument, ran: admitted },
  { name: "a call whose message is too large", request: call({ note: "x".repeat(readMaxBytes) }, [gardener]),
    procedure, code: Code.ResourceExhausted, ran: gated },
  { name: "a body that is too large", request: call({ note: "x".repeat(80 * 1024) }, [gardener]),
    code: Code.ResourceExhausted, ran: admitted },
  { name: "a body that is not JSON", request: withHeader(raw("{"), { authorization: gardener[1] }),
    code: Code.InvalidArgument, ran: admitted },
  { name: "a request without a body", request: withHeader(raw(""), { authorization: gardener[1] }),
    code: Code.InvalidArgument, ran: admitted },
  { name: "another content type", request: withHeader(call({}, [gardener]), { "content-type": "text/plain" }),
    code: Code.InvalidArgument, ran: admitted },
];

const ran: string[] = [];

/** Starts a greenhouse whose visitors have only the scope to read. */
const startGuarded = async (
  waterBed: (note: string, context: HandlerContext) => void | Promise<void> = () => {},
  listen: TestListenOptions = {},
): Promise<TestGreenhouse> =>
  await startGreenhouse(
    {
      waterBed: async ({ note }, context) => {
        ran.push("handler");
        await waterBed(note, context);
        return {};
      },
    },
    {
      readMaxBytes,
      mcp: createMcp({ tools: [procedure.slice(1).replace("/", ".")] }),
      admit: ({ procedure: name, authorization, contextValues }) => {
        ran.push(`admit ${name}`);
        if (authorization === null)
          throw new ConnectError("who are you", Code.Unauthenticated, { "www-authenticate": "Bearer" });
        contextValues.set(subjectKey, authorization);
      },
      requestGate: ({ service, method }) => void ran.push(`gate /${service.typeName}/${method.name}`),
      interceptors: [
        (next) => (request) => {
          const { service, method, contextValues } = request;
          ran.push(`scope /${service.typeName}/${method.name}`);
          if (contextValues.get(subjectKey) === visitor[1]) throw new ConnectError("read only", Code.PermissionDenied);
          return next(request);
        },
      ],
    },
    listen,
  );

beforeEach(() => {
  ran.length = 0;
});

const servers: readonly { name: string; version: HttpVersion; listen: TestListenOptions }[] = [
  { name: "HTTP/1.1", version: "1.1", listen: {} },
  { name: "HTTP/2", version: "2", listen: {} },
  { name: "a handler in node:http2", version: "2", listen: { http2: "mounted" } },
];

test.each(servers)("over $name, every step before a call's handler can end it", async ({ version, listen }) => {
  using connections = new KeptConnections();
  await using greenhouse = await startGuarded((note) => {
    if (note === "dry") throw new ConnectError("dry", Code.Aborted);
    if (note === "late") return new Promise(() => {});
  }, listen);
  for (const [before, { name, request, ...wanted }] of cases.entries()) {
    ran.length = 0;
    const { httpStatus } = await connections.exchange(greenhouse.address, version, request);
    const reported = await greenhouse.completed(before + 1);
    expect.soft([name, reported.httpStatus]).toEqual([name, httpStatus]);
    const outcome = { name, procedure: reported.procedure, code: reported.error?.code, ran: [...ran] };
    expect.soft(outcome).toEqual({ procedure: undefined, code: undefined, name, ...wanted });
  }
  expect(greenhouse.completedRequests).toHaveLength(cases.length);
});

/** Sends a call's header and the start of its body, and returns the rest. */
function beginCall(connection: Http1Connection, sent: number, header: readonly Field[]): Buffer {
  const { body, ...head } = call({}, header);
  const bytes = Buffer.from(body ?? "");
  const length: Field = ["content-length", String(bytes.length)];
  connection.request({ ...head, header: [...head.header, length], body: bytes.subarray(0, sent) });
  return bytes.subarray(sent);
}

describe("a request whose body names the RPC", () => {
  test("is refused without a credential before its body arrives", async () => {
    await using greenhouse = await startGuarded();
    using connection = await openHttp1(greenhouse.address);
    beginCall(connection, 0, []);
    const response = await connection.readResponse();
    expect([response.httpStatus, fieldValue(response.header, "www-authenticate")]).toEqual([401, "Bearer"]);
  });

  test("starts its timeout only when the RPC is known", async () => {
    await using greenhouse = await startGuarded();
    using connection = await openHttp1(greenhouse.address);
    const rest = beginCall(connection, 5, [gardener, ["x-server-timeout", "0.001"]]);
    // The wait is longer than the timeout.
    await new Promise((resolve) => setTimeout(resolve, 10));
    expect(greenhouse.completedRequests).toEqual([]);
    connection.write(rest);
    await connection.readResponse();
    expect(await greenhouse.completed(1)).toMatchObject({ procedure });
  });

  test("ends without an RPC when its client disconnects during the body", async () => {
    await using greenhouse = await startGuarded();
    using connection = await openHttp1(greenhouse.address);
    beginCall(connection, 5, [gardener]);
    await expect.poll(() => ran).toEqual(admitted);
    connection.socket.resetAndDestroy();
    const reported = await greenhouse.completed(1);
    expect(reported).toMatchObject({ procedure: undefined, httpStatus: 0, error: { code: Code.Canceled } });
    expect(ran).toEqual(admitted);
  });

  test("aborts the signal of its handler when its client disconnects", async () => {
    const begun = Promise.withResolvers<HandlerContext>();
    await using greenhouse = await startGuarded(
      async (_, context) => (begun.resolve(context), await new Promise(() => {})),
    );
    using connection = await openHttp1(greenhouse.address);
    connection.request(call({}, [gardener]));
    const { signal } = await within(begun.promise, "the handler");
    connection.socket.resetAndDestroy();
    expect(ConnectError.from(await reasonOf(signal)).code).toBe(Code.Canceled);
    expect(await greenhouse.completed(1)).toMatchObject({ procedure, httpStatus: 0, error: { code: Code.Canceled } });
  });
});
