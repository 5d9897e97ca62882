import { Code, ConnectError, createContextKey } from "@connectrpc/connect";
import { beforeEach, describe, expect, test } from "vitest";
import type { AdmitRequest, Endpoint, Protocol } from "../../src/index.ts";
// oxfmt-ignore
import { encodeEnvelope, exchange, type Field, fieldValue, getReadingProcedure, type HttpRequest, type HttpResponse,
  type HttpVersion, nextEvent, openHttp1, openHttp2, rpcRequest, shared, startGreenhouse, startWatched, throws,
  waterBedProcedure, wireFormats, within } from "@protoport/testing";

const subjectKey = createContextKey("nobody");
const watch = "/greenhouse.v1.GreenhouseService/WatchReadings";
const empty = Buffer.alloc(0);
const json: Field = ["content-type", "application/json"];

/** A request, its properties for `admit`, and its outcome. */
interface Row {
  readonly name: string;
  readonly request: HttpRequest;
  readonly protocol: Protocol;
  readonly procedure?: string;
  /** The status if it is admitted. Default 200. */
  readonly httpStatus?: number;
  /** The HTTP status if it is refused; gRPC has a separate status. Default 401. */
  readonly refusedStatus?: 200;
}

const rpc = (format: keyof typeof wireFormats, procedure: string, body: Uint8Array = empty): HttpRequest =>
  rpcRequest(wireFormats[format], body, [], procedure);

function ask(httpMethod: string, path: string, header: readonly Field[] = []): HttpRequest {
  return { httpMethod, path, header };
}

const get = (path: string): HttpRequest => ask("GET", path);
const post = (path: string, body: Uint8Array): HttpRequest => ({ ...ask("POST", path, [json]), body });
const both: readonly HttpVersion[] = ["1.1", "2"];
const connectGet = `${getReadingProcedure}?encoding=json&message=%7B%7D`;
const connectStream: HttpRequest = {
  httpMethod: "POST",
  path: watch,
  header: [["content-type", "application/connect+proto"]],
  body: encodeEnvelope(0, empty),
};

const preflight: readonly Field[] = [
  ["origin", "https://a.example"],
  ["access-control-request-method", "POST"],
];
const water = waterBedProcedure;
const beds = "/beds/7:water";

// oxfmt-ignore
const rows: readonly Row[] = [
  { name: "a gRPC call", request: rpc("grpc", water), protocol: "grpc", procedure: water, refusedStatus: 200 },
  { name: "a gRPC stream", request: rpc("grpc", watch), protocol: "grpc", procedure: watch, refusedStatus: 200 },
  { name: "a gRPC-Web call", request: rpc("grpc-web", water), protocol: "grpc-web", procedure: water,
    refusedStatus: 200 },
  { name: "a gRPC-Web call in text", request: rpc("grpc-web-text", water), protocol: "grpc-web", procedure: water,
    refusedStatus: 200 },
  { name: "a Connect call", request: rpc("connect-proto", water), protocol: "connect", procedure: water },
  { name: "a Connect call by GET", request: get(connectGet), protocol: "connect", procedure: getReadingProcedure },
  { name: "a Connect stream", request: connectStream, protocol: "connect", procedure: watch, refusedStatus: 200 },
  { name: "a REST call", request: post(beds, Buffer.from("{}")), protocol: "rest", procedure: water },
  { name: "a body over the limit", request: post(beds, Buffer.alloc(2000, " ")), protocol: "rest", procedure: water,
    httpStatus: 413 },
  { name: "an endpoint that is not open", request: get("/closed"), protocol: "rest" },
  { name: "an endpoint by another method", request: ask("PUT", "/open"), protocol: "rest", httpStatus: 405 },
  { name: "an unknown path", request: get("/nothing"), protocol: "rest", httpStatus: 404 },
  { name: "a malformed path", request: get("/sensors/%zz/reading"), protocol: "rest", httpStatus: 400 },
  { name: "another method on a path of REST", request: ask("DELETE", beds), protocol: "rest", httpStatus: 405 },
  { name: "a gRPC call of an unknown RPC", request: rpc("grpc", "/a.B/C"), protocol: "grpc", refusedStatus: 200 },
  { name: "a Connect call of an unknown RPC", request: rpc("connect-json", "/a.B/C"), protocol: "connect",
    httpStatus: 404 },
  { name: "a preflight with CORS off", request: ask("OPTIONS", beds, preflight), protocol: "rest", httpStatus: 405 },
];

const cases = rows.flatMap(({ httpStatus = 200, refusedStatus = 401, procedure, ...row }) =>
  (row.protocol === "grpc" ? (["2"] as const) : both).map((version) => ({
    ...row,
    procedure,
    version,
    httpStatus,
    refusedStatus,
  })),
);

describe("admit", () => {
  let admitCalls: AdmitRequest[] = [];
  const subjects: string[] = [];
  const greenhouse = shared(() =>
    startGreenhouse(
      {
        waterBed: (_, { values }) => ({ note: values.get(subjectKey) }),
        getReading: (_, { values }) => ({ sensor: values.get(subjectKey) }),
        async *watchReadings(_, { values }) {
          yield { sensor: values.get(subjectKey) };
        },
      },
      {
        readMaxBytes: 1000,
        endpoints: ["/open", "/closed"].map((path) => ({
          path,
          open: path === "/open",
          handle: () => ({ httpStatus: 200, body: "ok" }),
        })),
        interceptors: [
          (next) => (request) => {
            subjects.push(request.contextValues.get(subjectKey));
            return next(request);
          },
        ],
        admit: (request) => {
          admitCalls.push(request);
          if (request.header.get("x-refuse") !== null)
            throw new ConnectError("who are you", Code.Unauthenticated, { "www-authenticate": "Bearer" });
          if (request.header.get("x-fault") !== null) throw new TypeError("secret");
          request.contextValues.set(subjectKey, "alice");
        },
      },
    ),
  );
  beforeEach(() => {
    admitCalls = [];
    subjects.length = 0;
  });

  const send = (version: HttpVersion, request: HttpRequest, ...header: readonly Field[]): Promise<HttpResponse> =>
    exchange(greenhouse.address, version, { ...request, header: [...request.header, ...header] });

  test.each(cases)(
    "for $name over HTTP/$version is called exactly once",
    async ({ version, request, procedure, protocol, httpStatus }) => {
      const before = greenhouse.completedRequests.length;
      expect((await send(version, request)).httpStatus).toBe(httpStatus);
      expect(admitCalls).toMatchObject([{ procedure, protocol, peer: { address: "127.0.0.1" } }]);
      const reported = await greenhouse.completed(before + 1);
      expect(reported).toMatchObject({ procedure, protocol, httpStatus, httpMethod: request.httpMethod });
      expect(reported.path).toBe(request.path.split("?")[0]);
      expect(reported.contextValues.get(subjectKey)).toBe("alice");
      expect(subjects.every((subject) => subject === "alice")).toBe(true);
      expect(greenhouse.completedRequests).toHaveLength(before + 1);
    },
  );

  test.each(cases)(
    "refuses $name over HTTP/$version before any other error",
    async ({ version, request, protocol, refusedStatus }) => {
      const before = greenhouse.completedRequests.length;
      const response = await send(version, request, ["x-refuse", "1"]);
      expect(response.httpStatus).toBe(refusedStatus);
      expect(String(response.body) + JSON.stringify([response.header, response.trailer]) + decoded(response)).toMatch(
        /who are you|who%20are%20you/,
      );
      if (protocol !== "grpc-web" && request !== connectStream)
        expect(fieldValue(response.header, "www-authenticate")).toBe("Bearer");
      expect(await greenhouse.completed(before + 1)).toMatchObject({ error: { code: Code.Unauthenticated } });
      expect([subjects, greenhouse.completedRequests.length]).toEqual([[], before + 1]);
    },
  );

  test.each(cases)("hides the message of its own error for $name over HTTP/$version", async ({ version, request }) => {
    const before = greenhouse.completedRequests.length;
    const response = await send(version, request, ["x-fault", "1"]);
    expect(
      `${String(response.body)}${decoded(response)}${JSON.stringify([response.header, response.trailer])}`,
    ).not.toContain("secret");
    expect(await greenhouse.completed(before + 1)).toMatchObject({ error: { code: Code.Internal } });
  });

  test.each([
    { name: "GET of an open endpoint", request: get("/open"), httpStatus: 200 },
    { name: "HEAD of an open endpoint", request: { httpMethod: "HEAD", path: "/open", header: [] }, httpStatus: 200 },
  ])("is not called for $name", async ({ request, httpStatus }) => {
    expect([(await send("1.1", request, ["x-refuse", "1"])).httpStatus, admitCalls]).toEqual([httpStatus, []]);
  });
});

const servers = [
  { transport: "HTTP/1.1", version: "1.1", http2: "listening" },
  { transport: "HTTP/2", version: "2", http2: "listening" },
  { transport: "HTTP/2, mounted", version: "2", http2: "mounted" },
] as const;
// oxfmt-ignore
const disconnected = [
  { name: "a REST call", request: post(beds, Buffer.from("{}")), step: "admit" },
  { name: "a Connect stream", request: connectStream, step: "admit" },
  { name: "an endpoint's request", request: get("/page"), step: "admit" },
  { name: "an endpoint's request", request: get("/page"), step: "the endpoint" },
];

test.each(servers.flatMap((server) => disconnected.map((row) => ({ ...server, ...row }))))(
  "over $transport, $name whose client disconnects during $step is cancelled, and goes no further",
  async ({ version, http2, request, step }) => {
    const reached = Promise.withResolvers<void>();
    const closed = Promise.withResolvers<void>();
    let endpointCalls = 0;
    const admit = async (): Promise<void> => {
      void nextEvent("close").then(() => closed.resolve());
      if (step !== "admit") return;
      reached.resolve();
      await closed.promise;
    };
    const handle: Endpoint["handle"] = async () => {
      endpointCalls += 1;
      reached.resolve();
      await closed.promise;
      return { httpStatus: 200, body: "late" };
    };
    const endpoints = [{ path: "/page", open: false, handle }];
    await using greenhouse = await startWatched({ admit, endpoints }, { http2 });
    if (version === "1.1") {
      using connection = await openHttp1(greenhouse.address);
      connection.request(request);
      await within(reached.promise, step);
      // A client that only closes its side is disconnected seconds later.
      connection.socket.resetAndDestroy();
    } else {
      using connection = await openHttp2(greenhouse.address);
      connection.open(request).on("error", () => undefined);
      await within(reached.promise, step);
    }
    expect(await greenhouse.completed(1)).toMatchObject({ httpStatus: 0, error: { code: Code.Canceled } });
    expect([greenhouse.ran, endpointCalls]).toEqual([[], step === "admit" ? 0 : 1]);
  },
);

test.each(both)("over HTTP/%s, admit and endpoints cannot respond through the request", async (version) => {
  const header: Field[] = [["x-name", "ada"]];
  const received: unknown[] = [];
  const inspectRequest = (request: Pick<AdmitRequest, "header">): void => {
    received.push(request.header.get("X-Name"));
    // All members of a request except its connection, including inherited ones.
    const own = Object.entries(request).map(([name, value]) => (name === "connection" ? undefined : value));
    for (const value of [request, request.header, ...own])
      if (typeof value === "object" && value !== null && "respond" in value) received.push(value);
  };
  const handle: Endpoint["handle"] = (request) => (inspectRequest(request), { httpStatus: 200, body: "" });
  const endpoints = [{ path: "/page", open: false, handle }];
  await using greenhouse = await startGreenhouse({}, { admit: inspectRequest, endpoints });
  await exchange(greenhouse.address, version, { ...get("/page"), header });
  expect(received).toEqual(["ada", "ada"]);
});

test.each(both)("over HTTP/%s, REST does not send metadata named status from admit", async (version) => {
  const admit = throws(new ConnectError("not you", Code.PermissionDenied, { status: "418", "x-a": "b" }));
  await using greenhouse = await startGreenhouse({}, { admit });
  const { httpStatus, header } = await exchange(greenhouse.address, version, get("/nothing"));
  expect([httpStatus, fieldValue(header, "status"), fieldValue(header, "x-a")]).toEqual([403, undefined, "b"]);
});

test("admit may return any thenable, and refuse with it", async () => {
  const thenable: PromiseLike<void> = {
    // oxlint-disable-next-line unicorn/no-thenable
    then: (_, reject) => Promise.reject(new ConnectError("not you", Code.PermissionDenied)).then(undefined, reject),
  };
  const admit = (): Promise<void> => Object.assign(Object.create(null), thenable);
  await using greenhouse = await startGreenhouse({ waterBed: () => ({}) }, { admit });
  const request = { httpMethod: "POST", path: "/beds/7:water", header: [json], body: Buffer.from("{}") };
  expect((await exchange(greenhouse.address, "1.1", request)).httpStatus).toBe(403);
});

/** The body, decoded from base64 for gRPC-Web in text. */
function decoded({ body }: HttpResponse): string {
  return Buffer.from(body.toString("latin1"), "base64").toString("latin1");
}

test("trusted proxies' fields are parsed once, however often peer is read", async () => {
  const peers: AdmitRequest["peer"][] = [];
  const admit = (request: AdmitRequest): void => void peers.push(request.peer, request.peer);
  const trustedProxies = { addresses: ["127.0.0.1"] };
  await using greenhouse = await startGreenhouse({ getReading: () => ({}) }, { admit, trustedProxies });
  const request = ask("GET", "/sensors/7/reading", [["x-forwarded-for", "192.0.2.7"]]);
  await exchange(greenhouse.address, "1.1", request);
  const [first, second] = peers;
  expect(first?.address).toBe("192.0.2.7");
  // The result is cached, because parsing the fields costs as much as several calls.
  expect(second).toBe(first);
});

test("admit gets the HTTP method, the route and isMounted", async () => {
  const calls: string[] = [];
  const admit = ({ httpMethod, httpRoute, isMounted }: AdmitRequest): void =>
    void calls.push(`${httpMethod} ${String(isMounted)} ${String(httpRoute)}`);
  const implementation = { getReading: () => ({}) };
  const path = "/sensors/7/reading";
  for (const [http2, version] of [
    ["listening", "1.1"] as const,
    ["listening", "2"] as const,
    ["mounted", "2"] as const,
  ]) {
    await using greenhouse = await startGreenhouse(implementation, { admit }, { http2 });
    await exchange(greenhouse.address, version, get(path));
    if (version === "2")
      await greenhouse.gateway.fetch(new Request(`http://orders.example${path}`, { method: "HEAD" }));
  }
  const route = "/sensors/{sensor}/reading";
  const wants = ["GET false", "GET false", "HEAD true", "GET true", "HEAD true"];
  expect(calls).toEqual(wants.map((want) => `${want} ${route}`));
});
