import { Code, ConnectError, createContextKey, type Interceptor } from "@connectrpc/connect";
import { beforeEach, describe, expect, test } from "vitest";
import { GreenhouseService } from "../../../examples/gen/greenhouse/v1/greenhouse_pb.ts";
import type { AdmitProcedure, CompletedRequest } from "../../src/index.ts";
import { createMcp } from "../../src/mcp/index.ts";
import { expectNoUnhandledRejections, type Form, forms, throws } from "../../../testing/src/callback-forms.ts";
// oxfmt-ignore
import { encodeEnvelope, type Field, fieldValue, getReadingProcedure as read, type HttpRequest, initializedRequest,
  openEveryTransport, openHttp1, postMcp, rowsFor, rpcRequest, shared, startGreenhouse, statelessRequest, toolNameOf,
  transportNames, waterBedProcedure as water, wireFormats, within } from "@protoport/testing";

const watch = "/greenhouse.v1.GreenhouseService/WatchReadings";
const challenge = 'Bearer error="insufficient_scope"';
const json: Field = ["content-type", "application/json"];
// No format decodes these bytes, so the test cases show whether the check or the decoding happens first.
const malformed = Buffer.from("{");

function post(path: string, contentType: string, body: Uint8Array): HttpRequest {
  return { httpMethod: "POST", path, header: [["content-type", contentType]], body };
}

const callTool = (procedure: string, args: object): HttpRequest =>
  statelessRequest("tools/call", { name: toolNameOf(procedure), arguments: args });

/** A request that names a procedure in its path or in its body. */
interface NamedRequest {
  readonly name: string;
  readonly procedure: string;
  readonly request: HttpRequest;
  /** The status for a refusal. Default 403. */
  readonly refusedStatus?: number;
  /** The error if the request is admitted. Default InvalidArgument, because the message is malformed. */
  readonly admittedCode?: Code | undefined;
  /** Whether the request needs HTTP/2. */
  readonly http2?: boolean;
}

// oxfmt-ignore
const named: readonly NamedRequest[] = [
  { name: "a REST call", procedure: water, request: post("/beds/7:water", "application/json", malformed) },
  { name: "a REST call by another method", procedure: water,
    request: { httpMethod: "PUT", path: water, header: [json] }, admittedCode: Code.Unimplemented },
  { name: "a Connect call", procedure: water, request: rpcRequest(wireFormats["connect-json"], malformed, [], water) },
  { name: "a Connect call by GET", procedure: read,
    request: { httpMethod: "GET", path: `${read}?encoding=json&message=%7B`, header: [] } },
  { name: "a Connect stream", procedure: watch,
    request: post(watch, "application/connect+json", encodeEnvelope(0, malformed)), refusedStatus: 200 },
  { name: "a gRPC-Web call", procedure: water, request: rpcRequest(wireFormats["grpc-web-json"], malformed, [], water),
    refusedStatus: 200 },
  { name: "a gRPC call", procedure: water, request: rpcRequest(wireFormats["grpc-json"], malformed, [], water),
    refusedStatus: 200, http2: true },
  { name: "a gRPC stream", procedure: watch, request: rpcRequest(wireFormats["grpc-json"], malformed, [], watch),
    refusedStatus: 200, http2: true },
  { name: "a tool call", procedure: water, request: callTool(water, { liters: "many" }) },
  { name: "a tool call after initialize", procedure: water,
    request: initializedRequest("tools/call", { name: toolNameOf(water), arguments: { liters: "many" } }) },
  { name: "a tool call of a stream", procedure: watch, request: callTool(watch, { count: "many" }) },
];

const http2Transports: readonly string[] = ["the engine's HTTP/2", "a handler in node:http2"];
const namedByTransport = named.flatMap((row) =>
  transportNames
    .filter((transport) => row.http2 !== true || http2Transports.includes(transport))
    .map((transport) => ({ ...row, transport })),
);

const unnamed: readonly { readonly name: string; readonly request: HttpRequest }[] = [
  { name: "a list of tools", request: statelessRequest("tools/list") },
  { name: "a tool that does not exist", request: statelessRequest("tools/call", { name: "none", arguments: {} }) },
  { name: "a notification", request: postMcp('{"jsonrpc":"2.0","method":"notifications/initialized"}') },
  { name: "a body that is not JSON", request: postMcp("{") },
  { name: "an unknown path", request: { httpMethod: "GET", path: "/nothing", header: [] } },
  { name: "an endpoint", request: { httpMethod: "GET", path: "/closed", header: [] } },
];

const subjectKey = createContextKey("nobody");
const refusal = new ConnectError("not yours", Code.PermissionDenied, { "www-authenticate": challenge });
const checks: Readonly<Record<Form, AdmitProcedure>> = {
  returns: () => {},
  resolves: async () => {},
  throws: throws(refusal),
  rejects: async () => {
    throw refusal;
  },
};
/** How `admit` returns its function. */
const admits = ["returns", "resolves"] as const;
expectNoUnhandledRejections();

describe.each(admits)("the function that admit %s", (admitForm) => {
  let check: AdmitProcedure;
  const ran: string[] = [];
  const completed: CompletedRequest[] = [];

  const gateway = shared(() =>
    openEveryTransport({
      routes: (router) =>
        router.service(GreenhouseService, { waterBed: () => ({}), getReading: () => ({}), async *watchReadings() {} }),
      mcp: createMcp({ tools: ["greenhouse.v1.*"] }),
      endpoints: [{ path: "/closed", open: false, handle: () => ({ httpStatus: 200, body: "ok" }) }],
      onResponse: (request) => void completed.push(request),
      // The failing functions are faults.
      onFault: () => {},
      admit: ({ procedure, contextValues }) => {
        ran.push(`admit ${procedure}`);
        contextValues.set(subjectKey, "alice");
        const counted: AdmitProcedure = (name) => {
          ran.push(`check ${name} of ${contextValues.get(subjectKey)}`);
          return check(name);
        };
        return admitForm === "returns" ? counted : Promise.resolve(counted);
      },
    }),
  );
  beforeEach(() => {
    ran.length = 0;
    completed.length = 0;
  });

  const lastCompleted = async (): Promise<CompletedRequest> => {
    await expect.poll(() => completed).toHaveLength(1);
    const [request] = completed;
    if (request === undefined) throw new Error("no request was completed");
    return request;
  };

  test.each(rowsFor(admitForm, admits, namedByTransport))(
    "over $transport, gets the procedure once before $name is decoded",
    async ({ transport, request, procedure, refusedStatus = 403, admittedCode = Code.InvalidArgument }) => {
      const isInBody = request.path === "/mcp";
      const wanted = [`admit ${isInBody ? undefined : procedure}`, `check ${procedure} of alice`];
      for (const form of forms) {
        ran.length = 0;
        completed.length = 0;
        check = checks[form];
        const isRefused = form === "throws" || form === "rejects";
        const response = await within(gateway.ask(transport, request), "the response");
        const { error, procedure: reported, httpStatus } = await lastCompleted();
        expect.soft([form, error?.code]).toEqual([form, isRefused ? Code.PermissionDenied : admittedCode]);
        expect.soft([form, ran, reported]).toEqual([form, wanted, procedure]);
        expect.soft(httpStatus).toBe(response.httpStatus);
        if (!isRefused) continue;
        expect.soft([form, response.httpStatus]).toEqual([form, refusedStatus]);
        if (refusedStatus === 200) continue;
        expect.soft([form, fieldValue(response.header, "www-authenticate")]).toEqual([form, challenge]);
      }
    },
  );

  test.each(unnamed)("is not called for $name", async ({ request }) => {
    check = throws(refusal);
    for (const transport of transportNames)
      await within(gateway.ask(transport, request), `the response by ${transport}`);
    expect(ran).toEqual(transportNames.map(() => "admit undefined"));
  });

  test("refuses a tool call with a JSON-RPC error for the call's id", async () => {
    check = throws(refusal);
    const { body } = await gateway.ask("a handler in node:http", callTool(water, {}));
    expect(JSON.parse(String(body))).toEqual({ jsonrpc: "2.0", id: 1, error: { code: -32_600, message: "not yours" } });
  });

  test("hides the message of an unexpected error in a 500", async () => {
    check = throws(new TypeError("secret"));
    for (const request of [callTool(water, {}), post("/beds/7:water", "application/json", Buffer.from("{}"))]) {
      const { httpStatus, body } = await gateway.ask("a handler in node:http", request);
      expect([httpStatus, String(body).includes("secret")]).toEqual([500, false]);
    }
  });
});

describe("a call that admit checks", () => {
  const inPath = post("/beds/7:water", "application/json", Buffer.from('{"bed":"7"}'));

  test.each([
    { name: "the procedure in its path", request: inPath },
    { name: "the procedure in its body", request: callTool(water, { bed: "7" }) },
    // Without the disconnect, the response would be 405.
    { name: "a wrong HTTP method", request: { ...inPath, httpMethod: "PUT", path: water } },
  ])("with $name does not reach its handler after a disconnect", async ({ request }) => {
    const handled: string[] = [];
    const [begun, decided] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
    const admit = (): AdmitProcedure => async () => {
      begun.resolve();
      await decided.promise;
    };
    const handlers: Parameters<typeof startGreenhouse>[0] = { waterBed: ({ bed }) => (handled.push(String(bed)), {}) };
    await using greenhouse = await startGreenhouse(handlers, { admit, mcp: createMcp({ tools: ["greenhouse.v1.*"] }) });
    using connection = await openHttp1(greenhouse.address);
    connection.request(request);
    await within(begun.promise, "the check");
    connection.socket.resetAndDestroy();
    await expect.poll(() => greenhouse.openRequests()).toBe(0);
    decided.resolve();
    expect(await greenhouse.completed(1)).toMatchObject({ httpStatus: 0, error: { code: Code.Canceled } });
    expect([handled, greenhouse.completedRequests.length]).toEqual([[], 1]);
  });

  test("is refused before its body arrives when the path names its procedure", async () => {
    const admit = (): AdmitProcedure => throws(refusal);
    await using greenhouse = await startGreenhouse({ waterBed: () => ({}) }, { admit });
    using connection = await openHttp1(greenhouse.address);
    connection.request({ httpMethod: "POST", path: "/beds/7:water", header: [json, ["content-length", "11"]] });
    expect((await connection.readResponse()).httpStatus).toBe(403);
  });

  test("reaches its interceptors in the same turn if admit is synchronous", async () => {
    const order: string[] = [];
    const admit = (): AdmitProcedure => (queueMicrotask(() => order.push("microtask")), () => {});
    const interceptor: Interceptor = (next) => async (request) => (order.push("interceptor"), await next(request));
    await using greenhouse = await startGreenhouse({ getReading: () => ({}) }, { admit, interceptors: [interceptor] });
    await greenhouse.gateway.fetch(new Request("http://orders.example/sensors/7/reading"));
    expect(order).toEqual(["interceptor", "microtask"]);
  });
});
