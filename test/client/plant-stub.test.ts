import { credentials, Metadata, type ServiceError, status } from "@grpc/grpc-js";
import { Code, ConnectError } from "@connectrpc/connect";
import { expect, test } from "vitest";
import { createPlantClient, type PlantClientOptions } from "../../src/client/index.ts";
import { openMemoryStore } from "../../src/stores/index.ts";
import type { PlantStore } from "../../src/service/index.ts";
import { type Address, startGreenhouse } from "@protoport/testing";
import { startPlantServer, tokens } from "../support/server/plant-server.ts";
import { fakeStore } from "../support/plants/fake-store.ts";

async function deletePlant(
  token: PlantClientOptions["token"],
  id: bigint,
  store: PlantStore = openMemoryStore(new Set([id])),
): Promise<status> {
  await using server = await startPlantServer({ store });
  using client = clientOf(server.address, token);
  return await new Promise((resolve) => {
    client.stub.deletePlant({ id }, (error: ServiceError | null) => resolve(error?.code ?? status.OK));
  });
}

function clientOf({ address, port }: Address, token: PlantClientOptions["token"] = tokens.good) {
  const target = `${address}:${String(port)}`;
  const client = createPlantClient({ address: target, token, credentials: credentials.createInsecure() });
  return Object.assign(client, { [Symbol.dispose]: () => client.close() });
}

test.each([
  { name: "a token", token: tokens.good },
  { name: "a token from a function", token: () => tokens.good },
  { name: "a token from an async function", token: () => Promise.resolve(tokens.good) },
])("the client sends $name with every call", async ({ token }) => {
  expect(await deletePlant(token, 9_007_199_254_740_993n)).toBe(status.OK);
});

test.each<[name: string, token: () => string | Promise<string>]>([
  [
    "throws",
    () => {
      throw new Error("the provider is unavailable");
    },
  ],
  ["rejects", () => Promise.reject(new Error("the provider is unavailable"))],
  ["returns an invalid token", () => "token\n"],
  ["resolves with an invalid token", () => Promise.resolve("token\n")],
])("if the token function %s, the call fails without a request", async (_name, token) => {
  const { store, attempts } = countingStore(() => Promise.resolve(true));
  const code = await deletePlant(token, 1n, store);
  expect({ code, attempts: attempts() }).toEqual({ code: status.UNAUTHENTICATED, attempts: 0 });
});

test.each<[name: string, respond: (attempt: number) => Promise<boolean>, want: { code: status; attempts: number }]>(
  // oxfmt-ignore
  [
    ["the client retries while the store is unavailable",
      (attempt) => (attempt < 3 ? Promise.reject(unavailable()) : Promise.resolve(true)),
      { code: status.OK, attempts: 3 }],
    ["the client does not retry NOT_FOUND", () => Promise.resolve(false), { code: status.NOT_FOUND, attempts: 1 }],
    ["the client retries while the queue of the store is full",
      (attempt) => (attempt < 3 ? Promise.reject(full()) : Promise.resolve(true)), { code: status.OK, attempts: 3 }],
    ["the client stops after four attempts with a full queue", () => Promise.reject(full()),
      { code: status.RESOURCE_EXHAUSTED, attempts: 4 }],
    ["the client does not retry when the server's pushback forbids it", () => Promise.reject(full("-1")),
      { code: status.RESOURCE_EXHAUSTED, attempts: 1 }],
    ["the client does not retry INTERNAL", () => Promise.reject(new Error("a bug")),
      { code: status.INTERNAL, attempts: 1 }],
  ],
)("%s", async (_name, respond, want) => {
  const { store, attempts } = countingStore(respond);
  expect({ code: await deletePlant(tokens.good, 1n, store), attempts: attempts() }).toEqual(want);
});

test("the client retries a call with the same idempotency key", async () => {
  const keys: (string | undefined)[] = [];
  const store = fakeStore({
    delete: (_, { idempotencyKey }) => {
      keys.push(idempotencyKey);
      return keys.length % 3 === 0 ? Promise.resolve(true) : Promise.reject(unavailable());
    },
  });
  await using server = await startPlantServer({ store });
  using client = clientOf(server.address);
  // All calls use the same object, which the client must not change.
  const metadata = new Metadata();
  const call = (): Promise<void> =>
    new Promise((resolve, reject) => {
      client.stub.deletePlant({ id: 1n }, metadata, (error) => (error === null ? resolve() : reject(error)));
    });
  await call();
  await call();
  expect(metadata.getMap()).toEqual({});
  metadata.set("idempotency-key", '"mine"');
  await call();
  const [first, , , second] = keys;
  expect(keys).toEqual([first, first, first, second, second, second, ":mine", ":mine", ":mine"]);
  keys.length = 0;
  metadata.set("idempotency-key", "");
  await expect(call()).rejects.toMatchObject({ code: status.UNAVAILABLE });
  expect(keys).toEqual([undefined]);
  expect(new Set([first, second, ":mine"])).toHaveProperty("size", 3);
  expect(first).toMatch(/^:[0-9a-f-]{36}$/);
});

type CountingStore = { readonly store: PlantStore; readonly attempts: () => number };

function countingStore(respond: (attempt: number) => Promise<boolean>): CountingStore {
  let attempts = 0;
  return { store: fakeStore({ delete: () => respond(++attempts) }), attempts: () => attempts };
}

/** Returns the error that a store with a full queue throws, with the milliseconds after which to retry. */
function full(pushbackMs = "1"): ConnectError {
  return new ConnectError("full", Code.ResourceExhausted, { "grpc-retry-pushback-ms": pushbackMs });
}

function unavailable(): ConnectError {
  return new ConnectError("unavailable", Code.Unavailable);
}

test("the client retries only deletions, and sends idempotency keys only with them", async () => {
  const requests: string[] = [];
  await using server = await startGreenhouse(
    {},
    {
      admit: ({ header }) => {
        requests.push(
          `${header.get(":path") ?? ""} ${header.get("idempotency-key") === null ? "without" : "with"} a key`,
        );
        throw new ConnectError("not now", Code.Unavailable, { "grpc-retry-pushback-ms": "0" });
      },
    },
  );
  using client = clientOf(server.address);
  const deletion = "/plantstore.v1.PlantService/DeletePlant";
  const watering = "/plantstore.v1.PlantService/WaterPlant";
  for (const path of [deletion, watering]) {
    const code = await new Promise((resolve) => {
      const done = (error: { code?: number } | null): void => resolve(error?.code);
      client.stub.makeUnaryRequest(path, () => Buffer.of(), String, {}, done);
    });
    expect(code).toBe(status.UNAVAILABLE);
  }
  const deletions = Array<string>(4).fill(`${deletion} with a key`);
  expect(requests).toEqual([...deletions, `${watering} without a key`]);
});
