import { getEventListeners } from "node:events";
import { Code, ConnectError } from "@connectrpc/connect";
import { credentials, status } from "@grpc/grpc-js";
import { expect, test } from "vitest";
import { createPlants, type Plants, PlantsError, type PlantsOptions } from "../../src/client/index.ts";
import { openMemoryStore } from "../../src/stores/index.ts";
import type { PlantStore } from "../../src/service/index.ts";
import { startLossyProxy } from "../../packages/testing/src/carriers/lossy-proxy.ts";
import { startPlantServer, type TestPlantServer, tokens } from "../support/server/plant-server.ts";
import { fakeStore } from "../support/plants/fake-store.ts";

function plantsOf({ address }: TestPlantServer, options: Partial<PlantsOptions> = {}): Plants {
  return createPlants({
    address: `${address.address}:${String(address.port)}`,
    token: tokens.good,
    credentials: credentials.createInsecure(),
    ...options,
  });
}

/** What a call came to: its outcome, or the code and message of its error. */
async function deletePlant(
  store: PlantStore,
  options: Partial<PlantsOptions> = {},
  signal?: AbortSignal,
): Promise<unknown> {
  await using server = await startPlantServer({ store });
  const plants = plantsOf(server, options);
  try {
    return await plants.delete(9_007_199_254_740_993n, signal === undefined ? {} : { signal });
  } catch (error) {
    if (!(error instanceof PlantsError)) throw error;
    expect(error.cause).toMatchObject({ code: status[error.code] });
    return { code: error.code, message: error.message };
  } finally {
    plants.close();
  }
}

test("a plant that is there is deleted, by all digits of its id", async () => {
  expect(await deletePlant(openMemoryStore(new Set([9_007_199_254_740_993n])))).toBe("deleted");
});

test("a signal that outlives its call keeps nothing of it", async () => {
  const { signal } = new AbortController();
  await deletePlant(openMemoryStore(new Set()), {}, signal);
  expect(getEventListeners(signal, "abort")).toEqual([]);
});

test("a plant that is not there is an outcome, not an error", async () => {
  expect(await deletePlant(openMemoryStore(new Set([9_007_199_254_740_992n])))).toBe("not-found");
});

test.each([2n ** 63n, -(2n ** 63n) - 1n])(
  "an id of more than 64 bits, %s, is refused before it is sent",
  async (id) => {
    const plants = createPlants({ address: "127.0.0.1:1", token: tokens.good });
    await expect(plants.delete(id)).rejects.toThrow("INVALID_ARGUMENT: the id is no bigint of 64 bits, such as 42n");
    plants.close();
  },
);

test.each([
  { name: "no character", key: "" },
  { name: "129 characters", key: "x".repeat(129) },
  { name: "a letter beyond ASCII", key: "secr\u00e9t" },
  { name: "a line break", key: "secret\n" },
])("an idempotency key with $name is refused before it is sent, and not quoted", async ({ key }) => {
  const plants = createPlants({ address: "127.0.0.1:1", token: tokens.good });
  await expect(plants.delete(1n, { idempotencyKey: key })).rejects.toMatchObject({
    name: "PlantsError",
    message: "INVALID_ARGUMENT: the idempotency key is no string of 1 to 128 printable ASCII characters",
  });
  plants.close();
});

test.each([
  { name: "an empty token", token: "", want: "the token is empty" },
  { name: "a token with the line break of its file", token: "secret-token\n", want: "may end with a line break" },
])("$name is refused at once, and not quoted", ({ token, want }) => {
  const create = (): unknown => createPlants({ address: "127.0.0.1:1", token });
  expect(create).toThrow(want);
  expect(create).not.toThrow("secret");
});

test("a function that returns no token fails its call", async () => {
  expect(await deletePlant(openMemoryStore(), { token: () => "" })).toEqual({
    code: "UNAUTHENTICATED",
    message: expect.stringContaining("the token could not be had: Error: the token is empty; give a token"),
  });
});

function failing(code: Code): PlantStore {
  return fakeStore({ delete: () => Promise.reject(new ConnectError("not now", code)) });
}

test.each([
  {
    store: openMemoryStore(),
    token: tokens.unknown,
    code: "UNAUTHENTICATED",
    want: "the token is not valid; give a token that the server knows and that has not expired",
  },
  {
    store: openMemoryStore(),
    token: tokens.narrow,
    code: "PERMISSION_DENIED",
    want: "the token lacks the scope plants:delete; give a token with the scope plants:delete",
  },
  {
    store: failing(Code.Unavailable),
    code: "UNAVAILABLE",
    want: "not now; check the address, and whether the server has TLS; the plant may be deleted, and repeating is safe",
  },
  { store: failing(Code.ResourceExhausted), code: "RESOURCE_EXHAUSTED", want: "not now; repeat it later" },
  { store: failing(Code.Aborted), code: "ABORTED", want: "not now" },
])("an error says what to do: $code", async ({ store, token = tokens.good, code, want }) => {
  expect(await deletePlant(store, { token })).toEqual({ code, message: `${code}: ${want}` });
});

test("a key of the caller's own is sent as it is, and is refused for another plant", async () => {
  await using server = await startPlantServer({ store: openMemoryStore(new Set([1n, 2n])) });
  const plants = plantsOf(server);
  const options = { idempotencyKey: 'mine: "\\"' };
  expect(await plants.delete(1n, options)).toBe("deleted");
  expect(await plants.delete(1n, options)).toBe("deleted");
  expect(await plants.delete(1n)).toBe("not-found");
  await expect(plants.delete(2n, options)).rejects.toMatchObject({
    code: "ALREADY_EXISTS",
    message:
      "ALREADY_EXISTS: the idempotency key belongs to another deletion; give each plant an idempotency key of its own",
  });
  plants.close();
});

test("a call without a key sends none", async () => {
  const keys: (string | undefined)[] = [];
  const store = fakeStore({
    delete: (_, { idempotencyKey }) => {
      keys.push(idempotencyKey);
      return Promise.resolve(true);
    },
  });
  await using server = await startPlantServer({ store });
  const plants = plantsOf(server);
  await plants.delete(1n, { idempotencyKey: null });
  plants.close();
  expect(keys).toEqual([undefined]);
});

test("a call without a key is tried once, and its error names what a repeated call would report", async () => {
  let attempts = 0;
  const store = fakeStore({
    delete: () => {
      attempts += 1;
      return Promise.reject(new ConnectError("not now", Code.Unavailable));
    },
  });
  await using server = await startPlantServer({ store });
  const plants = plantsOf(server);
  await expect(plants.delete(1n, { idempotencyKey: null })).rejects.toMatchObject({
    code: "UNAVAILABLE",
    message: expect.stringMatching(
      /the plant may be deleted, and without an idempotency key a repeated call would not find it$/,
    ),
  });
  plants.close();
  expect(attempts).toBe(1);
});

test("closing the client closes the connection of calls without a key, too", async () => {
  await using server = await startPlantServer({ store: openMemoryStore() });
  await using proxy = await startLossyProxy(server.address);
  const plants = createPlants({ address: proxy.target, token: tokens.good, credentials: credentials.createInsecure() });
  await plants.delete(1n);
  await plants.delete(1n, { idempotencyKey: null });
  expect(proxy.open).toBeGreaterThan(0);
  plants.close();
  await expect.poll(() => proxy.open).toBe(0);
});

test("a call ends at its deadline, and says that repeating it is safe", async () => {
  const never = fakeStore({ delete: () => new Promise(() => undefined) });
  expect(await deletePlant(never, { timeoutMs: 200 })).toEqual({
    code: "DEADLINE_EXCEEDED",
    message: expect.stringMatching(/the plant may be deleted, and repeating is safe; timeoutMs allows more time$/),
  });
});

test.each([
  { name: "before it", abort: (controller: AbortController) => controller.abort(), inStore: false },
  { name: "while the store works", abort: () => undefined, inStore: true },
])("a call that is given up $name is cancelled", async ({ abort, inStore }) => {
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
    message: expect.stringMatching(/; the plant may be deleted, and repeating is safe$/),
  });
});
