import { createConnection } from "node:net";
import { once } from "node:events";
import type { Interceptor } from "@connectrpc/connect";
import { expect, test } from "vitest";
import { principalKey } from "@protoport/auth";
import { openMemoryStore } from "../../src/stores/index.ts";
import type { PlantStore } from "../../src/service/index.ts";
import { createPlantServer, type PlantServer, type PlantServerOptions } from "../../src/server/index.ts";
import { throws } from "@protoport/testing";
import { openLogLines, within } from "@protoport/testing/process";
import { testVerifier, tokens } from "../support/server/plant-server.ts";
import { fakeStore } from "../support/plants/fake-store.ts";

type Served = PlantServer & { readonly baseUrl: string; readonly port: number } & AsyncDisposable;

/** Starts a plant server with plants 1 to 3. */
async function serve(options: Partial<PlantServerOptions> = {}): Promise<Served> {
  const store = openMemoryStore(new Set([1n, 2n, 3n]));
  const server = createPlantServer({ store, verifier: testVerifier, ...options });
  const { address, port } = await server.listen({});
  return { ...server, baseUrl: `http://${address}:${port}`, port, [Symbol.asyncDispose]: () => server.close() };
}

async function statusOf(url: string, method: string, token: string | undefined = tokens.good): Promise<number> {
  const headers = { connection: "close", ...(token !== "" && { authorization: `Bearer ${token}` }) };
  const { status, body } = await fetch(url, { method, headers });
  await body?.cancel();
  return status;
}

function waitingStore(): { store: PlantStore; called: Promise<void>; release: () => void } {
  const { promise: released, resolve: release } = Promise.withResolvers<void>();
  const { promise: called, resolve: onCall } = Promise.withResolvers<void>();
  const store = fakeStore({
    delete: async () => {
      onCall();
      await released;
      return true;
    },
  });
  return { store, called, release };
}

test.each(["0.0.0.0", "::", "192.0.2.1", "plants.example"])(
  "listening on %s is refused without a verifier",
  async (host) => {
    const server = createPlantServer({ store: openMemoryStore() });
    await expect(server.listen({ host })).rejects.toThrow(`refusing to listen on ${host}: `);
  },
);

test("a server without a verifier refuses all calls", async () => {
  await using server = await serve({ verifier: undefined });
  expect(await statusOf(`${server.baseUrl}/plants/1`, "DELETE")).toBe(400);
  expect(await statusOf(`${server.baseUrl}/livez`, "GET", "")).toBe(200);
});

test("a server listens on 127.0.0.1 by default", async () => {
  await using server = await serve();
  expect(server.baseUrl).toMatch(/^http:\/\/127\.0\.0\.1:/);
});

test.each([
  { publicUrl: "https://plants.example/api", path: "/api/plants/1", method: "DELETE", want: 204 },
  { publicUrl: "https://plants.example/api/", path: "/api/livez", method: "GET", want: 200 },
  { publicUrl: "https://plants.example/api/v1/", path: "/api/v1/livez", method: "GET", want: 200 },
  { publicUrl: "https://plants.example/", path: "/livez", method: "GET", want: 200 },
  { publicUrl: "https://plants.example/api", path: "/plants/2", method: "DELETE", want: 404 },
  { publicUrl: "https://plants.example/api", path: "/livez", method: "GET", want: 404 },
  { publicUrl: "https://plants.example/api", path: "/apiplants/2", method: "DELETE", want: 404 },
  { publicUrl: "https://plants.example/api", path: "/api/api/plants/2", method: "DELETE", want: 404 },
])("with the public URL $publicUrl, $method $path gets a $want response", async ({ publicUrl, path, method, want }) => {
  await using server = await serve({ publicUrl: new URL(publicUrl) });
  expect(await statusOf(server.baseUrl + path, method)).toBe(want);
});

const watered = (): { httpStatus: number; body: string } => ({ httpStatus: 200, body: "watered" });

test("a custom endpoint requires a credential unless it is open", async () => {
  await using server = await serve({
    endpoints: [true, false].map((open) => ({ path: open ? "/open" : "/closed", open, handle: watered })),
  });
  const statuses = ["/open", "/closed"].map((path) => statusOf(server.baseUrl + path, "GET", ""));
  expect(await Promise.all(statuses)).toEqual([200, 400]);
  expect(await statusOf(`${server.baseUrl}/closed`, "GET")).toBe(200);
});

test("a custom interceptor runs only for accepted calls, with their principal", async () => {
  const calls: string[] = [];
  const interceptor: Interceptor = (next) => (request) => {
    calls.push(`${request.method.name} by ${request.contextValues.get(principalKey)?.subject ?? ""}`);
    return next(request);
  };
  await using server = await serve({ interceptors: [interceptor] });
  for (const token of ["", tokens.unknown, tokens.good]) await statusOf(`${server.baseUrl}/plants/1`, "DELETE", token);
  expect(calls).toEqual(["DeletePlant by alice"]);
});

test("a custom interceptor's error is logged, and returned as internal", async () => {
  const { log, lines } = openLogLines("error");
  await using server = await serve({ interceptors: [() => () => Promise.reject(new Error("out of soil"))], log });
  const headers = { authorization: `Bearer ${tokens.good}` };
  const response = await fetch(`${server.baseUrl}/plants/1`, { method: "DELETE", headers });
  const want = { status: 400, body: { error: 13, message: "internal error" } };
  expect({ status: response.status, body: await response.json() }).toEqual(want);
  expect(lines()).toContainEqual(
    expect.objectContaining({
      requestId: response.headers.get("x-request-id"),
      err: expect.objectContaining({ message: "out of soil" }),
    }),
  );
});

const failing = new Error("no tenant");
const failures: readonly (readonly [verb: string, fail: () => object])[] = [
  ["throws", throws(failing)],
  ["rejects", () => Promise.reject(failing)],
];

test.each(failures)("onResponse is called for every response, and has no effect if it %s", async (_verb, fail) => {
  const { log, lines } = openLogLines("error");
  const responses: (string | undefined)[] = [];
  await using server = await serve({
    log,
    onResponse: ({ procedure, httpStatus, error }) => {
      responses.push(`${procedure} ${httpStatus} ${error?.rawMessage}`);
      return fail();
    },
  });
  const statuses = [
    await statusOf(`${server.baseUrl}/plants/1`, "DELETE"),
    await statusOf(`${server.baseUrl}/plants/1`, "DELETE", ""),
    await statusOf(`${server.baseUrl}/livez`, "GET", ""),
  ];
  const procedure = "/plantstore.v1.PlantService/DeletePlant";
  expect({ statuses, responses, errors: lines().length }).toEqual({
    statuses: [204, 400, 200],
    responses: [`${procedure} 204 undefined`, `${procedure} 400 a bearer token is required`, "undefined 200 undefined"],
    // Logged once, although it is thrown for each response.
    errors: 1,
  });
});

test.each(failures)("the log's error is reported, and onResponse called, even if it %s", async (_verb, fail) => {
  const { log, lines } = openLogLines("info");
  const statuses: number[] = [];
  await using server = await serve({
    log: Object.assign(log, { info: throws(new Error("the disk is full")) }),
    onResponse: ({ httpStatus }) => {
      statuses.push(httpStatus);
      return fail();
    },
  });
  expect(await statusOf(`${server.baseUrl}/plants/1`, "DELETE")).toBe(204);
  await new Promise(setImmediate);
  expect(statuses).toEqual([204]);
  expect(lines()).toMatchObject([{ msg: "onResponse failed", err: { message: "the disk is full" } }]);
});

test.each([
  ...failures.map(([verb, fail]) => ({
    verb,
    fail,
    problem: verb === "throws" ? "no tenant" : "logFields must be synchronous, got a promise",
  })),
  { verb: "resolves", fail: async () => ({}), problem: "logFields must be synchronous, got a promise" },
])("the log line of a call has the problem if logFields $verb", async ({ fail, problem }) => {
  const { log, lines } = openLogLines("info");
  await using server = await serve({ log, logFields: fail });
  expect(await statusOf(`${server.baseUrl}/plants/1`, "DELETE")).toBe(204);
  await new Promise(setImmediate);
  expect(lines().filter(({ msg }) => msg === "call")).toMatchObject([{ plantId: "1", logFieldsProblem: problem }]);
});

test("drain waits for a running call, and refuses new connections", async () => {
  const { store, called, release } = waitingStore();
  await using server = await serve({ store });
  const deleted = statusOf(`${server.baseUrl}/plants/1`, "DELETE");
  await called;
  const finished: string[] = [];
  const drained = server.drain().then(() => finished.push("drain"));
  const refused = createConnection(server.port, "127.0.0.1");
  const [error] = await within(once(refused, "error"), "a refused connection");
  expect(error).toMatchObject({ code: "ECONNREFUSED" });
  finished.push("call");
  release();
  expect(await deleted).toBe(204);
  await within(drained, "the end of the drain");
  expect(finished).toEqual(["call", "drain"]);
});

test("drain turns readiness off immediately, before the drain delay", async () => {
  await using server = await serve({ drainDelayMs: 1 });
  const drained = server.drain();
  expect(server.readiness.draining.aborted).toBe(true);
  await within(drained, "the end of the drain");
});
