import { credentials, Metadata, type ServiceError, status } from "@grpc/grpc-js";
import { Code, ConnectError } from "@connectrpc/connect";
import { expect, test } from "vitest";
import { createPlantClient, type PlantClientOptions } from "../../src/client/index.ts";
import { openMemoryStore } from "../../src/stores/index.ts";
import type { PlantStore } from "../../src/service/index.ts";
import { startGreenhouse } from "../../packages/testing/src/gateway/greenhouse.ts";
import { startPlantServer, tokens } from "../support/server/plant-server.ts";
import { fakeStore } from "../support/plants/fake-store.ts";

/** Deletes a plant and returns the code of the answer. */
async function deletePlant(
  token: PlantClientOptions["token"],
  id: bigint,
  store: PlantStore = openMemoryStore(new Set([id])),
): Promise<status> {
  await using server = await startPlantServer({ store });
  const { address, port } = server.address;
  using client = disposable(
    createPlantClient({ address: `${address}:${String(port)}`, token, credentials: credentials.createInsecure() }),
  );
  return await new Promise((resolve) => {
    client.deletePlant({ id }, (error: ServiceError | null) => resolve(error?.code ?? status.OK));
  });
}

function disposable<T extends { close(): void }>(client: T): T & Disposable {
  return Object.assign(client, { [Symbol.dispose]: () => client.close() });
}

test.each([
  { name: "a token", token: tokens.good },
  { name: "a function that has the token", token: () => tokens.good },
  { name: "a function that fetches the token", token: () => Promise.resolve(tokens.good) },
])("$name is the credential of every call", async ({ token }) => {
  expect(await deletePlant(token, 9_007_199_254_740_993n)).toBe(status.OK);
});

test("a token that is wrong is refused", async () => {
  expect(await deletePlant(tokens.unknown, 1n)).toBe(status.UNAUTHENTICATED);
});

test.each<{ name: string; token: () => string | Promise<string> }>([
  {
    name: "throws",
    token: () => {
      throw new Error("the provider is away");
    },
  },
  { name: "rejects", token: () => Promise.reject(new Error("the provider is away")) },
  { name: "returns what is no token", token: () => "token\n" },
  { name: "resolves with what is no token", token: () => Promise.resolve("token\n") },
])("a function of tokens that $name ends the call, which the store never sees", async ({ token }) => {
  const { store, attempts } = countingStore(() => Promise.resolve(true));
  const code = await deletePlant(token, 1n, store);
  expect({ code, attempts: attempts() }).toEqual({ code: status.UNAUTHENTICATED, attempts: 0 });
});

test.each<{ name: string; answer: (attempt: number) => Promise<boolean>; want: { code: status; attempts: number } }>([
  {
    name: "a call that the store cannot take is repeated until it can",
    answer: (attempt) => (attempt < 3 ? Promise.reject(away()) : Promise.resolve(true)),
    want: { code: status.OK, attempts: 3 },
  },
  {
    name: "a store that stays away is given up after four attempts",
    answer: () => Promise.reject(away()),
    want: { code: status.UNAVAILABLE, attempts: 4 },
  },
  {
    name: "a plant that is not there is asked for once",
    answer: () => Promise.resolve(false),
    want: { code: status.NOT_FOUND, attempts: 1 },
  },
  {
    name: "a call that a full store refuses is repeated until it has room",
    answer: (attempt) => (attempt < 3 ? Promise.reject(full()) : Promise.resolve(true)),
    want: { code: status.OK, attempts: 3 },
  },
  {
    name: "a store that stays full is given up after four attempts",
    answer: () => Promise.reject(full()),
    want: { code: status.RESOURCE_EXHAUSTED, attempts: 4 },
  },
  {
    name: "a call is not repeated where the server asks for that",
    answer: () => Promise.reject(full("-1")),
    want: { code: status.RESOURCE_EXHAUSTED, attempts: 1 },
  },
  {
    name: "a fault is not repeated",
    answer: () => Promise.reject(new Error("a bug")),
    want: { code: status.INTERNAL, attempts: 1 },
  },
])("$name", async ({ answer, want }) => {
  const { store, attempts } = countingStore(answer);
  expect({ code: await deletePlant(tokens.good, 1n, store), attempts: attempts() }).toEqual(want);
});

test("every attempt of a call has the same idempotency key, every call another, and a call without one is not retried", async () => {
  const keys: (string | undefined)[] = [];
  const store = fakeStore({
    delete: (_, { idempotencyKey }) => {
      keys.push(idempotencyKey);
      return keys.length % 3 === 0 ? Promise.resolve(true) : Promise.reject(away());
    },
  });
  await using server = await startPlantServer({ store });
  const { address, port } = server.address;
  using client = disposable(
    createPlantClient({
      address: `${address}:${String(port)}`,
      token: tokens.good,
      credentials: credentials.createInsecure(),
    }),
  );
  // One object for all calls, in which nothing is left.
  const metadata = new Metadata();
  const call = (): Promise<void> =>
    new Promise((resolve, reject) => {
      client.deletePlant({ id: 1n }, metadata, (error) => (error === null ? resolve() : reject(error)));
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

interface CountingStore {
  readonly store: PlantStore;
  readonly attempts: () => number;
}

function countingStore(answer: (attempt: number) => Promise<boolean>): CountingStore {
  let attempts = 0;
  return { store: fakeStore({ delete: () => answer(++attempts) }), attempts: () => attempts };
}

/** Returns what a full store answers, with the milliseconds after which there may be room. */
function full(pushbackMs = "1"): ConnectError {
  return new ConnectError("full", Code.ResourceExhausted, { "grpc-retry-pushback-ms": pushbackMs });
}

function away(): ConnectError {
  return new ConnectError("away", Code.Unavailable);
}

test("deletions alone are repeated, and alone have an idempotency key", async () => {
  const asked: string[] = [];
  await using server = await startGreenhouse(
    {},
    {
      admit: ({ header }) => {
        asked.push(`${header.get(":path") ?? ""} ${header.get("idempotency-key") === null ? "without" : "with"} a key`);
        throw new ConnectError("not now", Code.Unavailable, { "grpc-retry-pushback-ms": "0" });
      },
    },
  );
  const address = `127.0.0.1:${String(server.address.port)}`;
  using client = disposable(
    createPlantClient({ address, token: tokens.good, credentials: credentials.createInsecure() }),
  );
  const deletion = "/plantstore.v1.PlantService/DeletePlant";
  const watering = "/plantstore.v1.PlantService/WaterPlant";
  for (const path of [deletion, watering]) {
    const code = await new Promise((resolve) => {
      client.makeUnaryRequest(
        path,
        () => Buffer.of(),
        String,
        {},
        (error) => resolve(error?.code),
      );
    });
    expect(code).toBe(status.UNAVAILABLE);
  }
  const deletions = Array<string>(4).fill(`${deletion} with a key`);
  expect(asked).toEqual([...deletions, `${watering} without a key`]);
});
