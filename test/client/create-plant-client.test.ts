import { getEventListeners } from "node:events";
import { createServer } from "node:http2";
import { Code, ConnectError } from "@connectrpc/connect";
import { type ClientUnaryCall, credentials, status } from "@grpc/grpc-js";
import { expect, onTestFinished, test } from "vitest";
import { createPlantClient, PlantClientError } from "../../src/client/index.ts";
import type { PlantClient, PlantClientOptions } from "../../src/client/index.ts";
import { openMemoryStore } from "../../src/stores/index.ts";
import type { PlantStore } from "../../src/service/index.ts";
import { listenOnLoopback } from "@protoport/testing/http";
import { collectGarbage } from "@protoport/testing/process";
import { startLossyProxy } from "../../protoport/testing/src/http/lossy-proxy.ts";
import { startPlantServer, type TestPlantServer, tokens } from "../support/server/plant-server.ts";
import { fakeStore } from "../support/plants/fake-store.ts";

/** Opens a client, by default for an address where no server listens. */
function openClient(options: Partial<PlantClientOptions> = {}): PlantClient & Disposable {
  const plants = createPlantClient({ address: "127.0.0.1:1", token: tokens.good, ...options });
  return Object.assign(plants, { [Symbol.dispose]: () => plants.close() });
}

function plantsOf({ address }: TestPlantServer, options: Partial<PlantClientOptions> = {}): PlantClient & Disposable {
  const target = `${address.address}:${String(address.port)}`;
  return openClient({ address: target, credentials: credentials.createInsecure(), ...options });
}

/** Returns a call's outcome, or the code and message of its error. */
async function deletePlant(store: PlantStore, options: Partial<PlantClientOptions> = {}, signal?: AbortSignal) {
  await using server = await startPlantServer({ store });
  using plants = plantsOf(server, options);
  try {
    return await plants.delete(9_007_199_254_740_993n, signal === undefined ? {} : { signal });
  } catch (error) {
    if (!(error instanceof PlantClientError)) throw error;
    expect(error.cause).toMatchObject({ code: status[error.code] });
    return { code: error.code, message: error.message };
  }
}

test("delete deletes a plant whose id is larger than a safe integer", async () =>
  expect(await deletePlant(openMemoryStore(new Set([9_007_199_254_740_993n])))).toBe("deleted"));

test("delete removes its listener from the signal after the call", async () => {
  const { signal } = new AbortController();
  await deletePlant(openMemoryStore(new Set()), {}, signal);
  expect(getEventListeners(signal, "abort")).toEqual([]);
});

test("delete returns not-found for an unknown plant", async () =>
  expect(await deletePlant(openMemoryStore(new Set([9_007_199_254_740_992n])))).toBe("not-found"));

test.each([2n ** 63n, -(2n ** 63n) - 1n])("delete refuses the id %s, which has more than 64 bits", async (id) => {
  using plants = openClient();
  await expect(plants.delete(id)).rejects.toThrow("INVALID_ARGUMENT: id must be a 64-bit bigint such as 42n");
});

test.each([
  { name: "no characters", key: "" },
  { name: "129 characters", key: "x".repeat(129) },
  { name: "a letter beyond ASCII", key: "secr\u00e9t" },
  { name: "a line break", key: "secret\n" },
])("delete refuses an idempotency key with $name, and does not quote it", async ({ key }) => {
  using plants = openClient();
  await expect(plants.delete(1n, { idempotencyKey: key })).rejects.toMatchObject({
    name: "PlantClientError",
    message: "INVALID_ARGUMENT: idempotencyKey must be 1 to 128 printable ASCII characters",
  });
});

test.each([
  { name: "an empty token", token: "", want: "the token is empty" },
  { name: "a token with a line break", token: "secret-token\n", want: "check for a line break at its end" },
])("createPlantClient refuses $name without quoting it", ({ token, want }) => {
  const create = (): unknown => createPlantClient({ address: "127.0.0.1:1", token });
  expect(create).toThrow(want);
  expect(create).not.toThrow("secret");
});

test("a call fails with UNAUTHENTICATED when the token is empty", async () =>
  expect(await deletePlant(openMemoryStore(), { token: () => "" })).toEqual({
    code: "UNAUTHENTICATED",
    message: expect.stringContaining("cannot obtain the token: Error: the token is empty"),
  }));

const failing = (code: Code) => fakeStore({ delete: () => Promise.reject(new ConnectError("not now", code)) });

const doubt =
  "the plant may have been deleted, and without the same idempotency key a repeated call may return not-found";

test.each(
  // oxfmt-ignore
  [
    { store: openMemoryStore(), token: tokens.unknown, code: "UNAUTHENTICATED", want: "the token is not valid" },
    { store: openMemoryStore(), token: tokens.narrow, code: "PERMISSION_DENIED",
      want: "the token lacks the scope plants:delete" },
    { store: failing(Code.Unavailable), code: "UNAVAILABLE",
      want: `not now; check the address, and whether the server uses TLS; ${doubt}` },
    { store: failing(Code.ResourceExhausted), code: "RESOURCE_EXHAUSTED", want: `not now; ${doubt}` },
    { store: failing(Code.Internal), code: "INTERNAL", want: `internal error; ${doubt}` },
    { store: failing(Code.Aborted), code: "ABORTED", want: "not now" },
  ],
)("the message for $code includes what to do", async ({ store, token = tokens.good, code, want }) => {
  expect(await deletePlant(store, { token })).toEqual({ code, message: `${code}: ${want}` });
});

test("delete sends the idempotency key from its options", async () => {
  await using server = await startPlantServer({ store: openMemoryStore(new Set([1n, 2n])) });
  using plants = plantsOf(server);
  const options = { idempotencyKey: 'mine: "\\"' };
  expect(await plants.delete(1n, options)).toBe("deleted");
  expect(await plants.delete(1n, options)).toBe("deleted");
  expect(await plants.delete(1n)).toBe("not-found");
  const want = { code: "ALREADY_EXISTS", message: "ALREADY_EXISTS: the idempotency key belongs to another deletion" };
  await expect(plants.delete(2n, options)).rejects.toMatchObject(want);
});

test("a failed call is safe to repeat with the caller's idempotency key", async () => {
  await using server = await startPlantServer({ store: failing(Code.Unavailable) });
  using plants = plantsOf(server);
  const want = { message: expect.stringMatching(/; the plant may have been deleted; you can repeat the call safely$/) };
  await expect(plants.delete(1n, { idempotencyKey: "mine" })).rejects.toMatchObject(want);
});

test("a call without a key that is refused once has deleted nothing", async () => {
  await using server = await startPlantServer({ store: failing(Code.ResourceExhausted) });
  using plants = plantsOf(server);
  const want = { message: "RESOURCE_EXHAUSTED: not now" };
  await expect(plants.delete(1n, { idempotencyKey: null })).rejects.toMatchObject(want);
});

test("the outcome of a call is unknown if a proxy responds with 500", async () => {
  const proxy = createServer((_, response) => response.writeHead(500).end());
  onTestFinished(() => void proxy.close());
  const { host } = new URL(await listenOnLoopback(proxy));
  using plants = openClient({ address: host, credentials: credentials.createInsecure() });
  await expect(plants.delete(1n)).rejects.toThrow(`UNKNOWN: Received HTTP status code 500; ${doubt}`);
});

test("delete sends no idempotency key if the option is null", async () => {
  const keys: (string | undefined)[] = [];
  const store = fakeStore({
    delete: (_, { idempotencyKey }) => {
      keys.push(idempotencyKey);
      return Promise.resolve(true);
    },
  });
  await using server = await startPlantServer({ store });
  using plants = plantsOf(server);
  await plants.delete(1n, { idempotencyKey: null });
  expect(keys).toEqual([undefined]);
});

test("delete without an idempotency key does not retry", async () => {
  let attempts = 0;
  const store = fakeStore({
    delete: () => {
      attempts += 1;
      return Promise.reject(new ConnectError("not now", Code.Unavailable));
    },
  });
  await using server = await startPlantServer({ store });
  using plants = plantsOf(server);
  await expect(plants.delete(1n, { idempotencyKey: null })).rejects.toMatchObject({
    code: "UNAVAILABLE",
    message: expect.stringMatching(
      /the plant may have been deleted, and without the same idempotency key a repeated call may return not-found$/,
    ),
  });
  expect(attempts).toBe(1);
});

test.each<{ name: string; token: PlantClientOptions["token"]; want: string }>([
  { name: "their token", token: () => new Promise(() => undefined), want: "CANCELLED: the client was closed" },
  { name: "a connection", token: tokens.good, want: "UNAVAILABLE: Channel closed before call started" },
])("close ends calls that wait for $name", async ({ token, want }) => {
  const plants = createPlantClient({ address: "127.0.0.1:1", token });
  const calls = [plants.delete(1n), plants.delete(1n, { idempotencyKey: null })];
  plants.close();
  const message = expect.stringContaining(want);
  const failed = { status: "rejected", reason: { name: "PlantClientError", message } };
  expect(await Promise.allSettled(calls)).toMatchObject([failed, failed]);
});

test("the client releases a call whose token it has obtained", async () => {
  await using server = await startPlantServer({ store: openMemoryStore() });
  using plants = plantsOf(server, { token: () => Promise.resolve(tokens.good) });
  let call: WeakRef<ClientUnaryCall> | undefined;
  await new Promise((resolve) => void (call = new WeakRef(plants.stub.deletePlant({ id: 1n }, resolve))));
  await plants.delete(2n);
  collectGarbage();
  expect(call?.deref()).toBeUndefined();
});

test("calls that the client has sent complete after close", async () => {
  const { promise: received, resolve: receive } = Promise.withResolvers<void>();
  const { promise: deleted, resolve: respond } = Promise.withResolvers<boolean>();
  const store = fakeStore({
    delete: async () => {
      receive();
      return await deleted;
    },
  });
  await using server = await startPlantServer({ store });
  const plants = plantsOf(server);
  const call = plants.delete(1n);
  await received;
  plants.close();
  respond(true);
  expect(await call).toBe("deleted");
});

test.each([{}, { idempotencyKey: null }, { signal: AbortSignal.abort() }])(
  "delete with %j fails after close",
  async (options) => {
    const plants = openClient();
    plants.close();
    const want = { name: "PlantClientError", message: "CANCELLED: the client is closed" };
    await expect(plants.delete(1n, options)).rejects.toMatchObject(want);
  },
);

test.each([
  { timeoutMs: "5000", got: "the string 5000" },
  { timeoutMs: Number.NaN, got: "the number NaN" },
  { timeoutMs: 5_000n, got: "the bigint 5000" },
])("delete refuses a timeout that is $got", async ({ timeoutMs, got }) => {
  const options: object = { timeoutMs };
  using ofClient = openClient(options);
  using ofCall = openClient();
  const want = new TypeError(`timeoutMs must be a number of milliseconds, got ${got}`);
  await expect(ofClient.delete(1n)).rejects.toThrow(want);
  await expect(ofCall.delete(1n, options)).rejects.toThrow(want);
});

test("close closes all connections of the client", async () => {
  await using server = await startPlantServer({ store: openMemoryStore() });
  await using proxy = await startLossyProxy(server.address);
  const plants = openClient({ address: proxy.target, credentials: credentials.createInsecure() });
  await plants.delete(1n);
  await plants.delete(1n, { idempotencyKey: null });
  expect(proxy.open).toBeGreaterThan(0);
  plants.close();
  await expect.poll(() => proxy.open).toBe(0);
});

test("a call fails at its deadline, with advice to repeat it", async () => {
  expect(await deletePlant(fakeStore({ delete: () => new Promise(() => undefined) }), { timeoutMs: 200 })).toEqual({
    code: "DEADLINE_EXCEEDED",
    message: expect.stringMatching(
      /the plant may have been deleted, and without the same idempotency key a repeated call may return not-found; set timeoutMs to allow more time$/,
    ),
  });
});

test.each<{ name: string; options: Partial<PlantClientOptions>; signal?: () => AbortSignal; code: string }>([
  { name: "its timeout passes", options: { timeoutMs: 20 }, code: "DEADLINE_EXCEEDED" },
  { name: "its signal aborts", options: {}, signal: () => AbortSignal.timeout(20), code: "CANCELLED" },
  { name: "its signal was aborted before", options: {}, signal: () => AbortSignal.abort(), code: "CANCELLED" },
])("a call that waits for its token fails when $name", async ({ options, signal, code }) => {
  const waiting = { token: (): Promise<string> => new Promise(() => undefined), ...options };
  expect(await deletePlant(openMemoryStore(), waiting, signal?.())).toMatchObject({ code });
});

test.each([
  { name: "before the call", abort: (controller: AbortController) => controller.abort(), inStore: false },
  { name: "during the call", abort: () => undefined, inStore: true },
])("a signal that aborts $name cancels the deletion", async ({ abort, inStore }) => {
  const controller = new AbortController();
  const store = fakeStore({
    delete: () => {
      if (inStore) controller.abort();
      return new Promise(() => undefined);
    },
  });
  abort(controller);
  expect(await deletePlant(store, {}, controller.signal)).toEqual({
    code: "CANCELLED",
    message: expect.stringMatching(
      /; the plant may have been deleted, and without the same idempotency key a repeated call may return not-found$/,
    ),
  });
});
