import { Code, ConnectError, createClient } from "@connectrpc/connect";
import { createConnectTransport } from "@connectrpc/connect-node";
import { afterAll, beforeAll, expect, test } from "vitest";

import { bearer, PlantService } from "../../src/client/connect.ts";
import { openMemoryStore } from "../../src/stores/index.ts";
import { startPlantServer, type TestPlantServer, tokens } from "../support/server/plant-server.ts";

let server: TestPlantServer;
beforeAll(async () => {
  server = await startPlantServer({ store: openMemoryStore(new Set([1n, 2n, 3n])) });
});
afterAll(() => server[Symbol.asyncDispose]());

async function deletePlant(id: bigint, token: Parameters<typeof bearer>[0]): Promise<object> {
  const baseUrl = `http://${server.address.address}:${server.address.port}`;
  const transport = createConnectTransport({ baseUrl, httpVersion: "1.1", interceptors: [bearer(token)] });
  return await createClient(PlantService, transport).deletePlant({ id });
}

test.each([
  { name: "a token", id: 1n, token: tokens.good },
  { name: "a token from a function", id: 2n, token: () => tokens.good },
  { name: "a token from an async function", id: 3n, token: () => Promise.resolve(tokens.good) },
])("bearer sends $name with every call", async ({ id, token }) => {
  await expect(deletePlant(id, token)).resolves.toBeDefined();
});

test.each(["", "secret-token\n"])("bearer refuses the invalid token %j without quoting it", (token) => {
  expect(() => bearer(token)).toThrow(/^the token (?!.*secret)/);
});

const unavailable = new ConnectError("the provider is unavailable", Code.Unavailable);

test.each<[name: string, token: () => string | Promise<string>]>([
  [
    "throws",
    () => {
      throw unavailable;
    },
  ],
  ["rejects", () => Promise.reject(unavailable)],
])("a token function that %s makes the call fail with its error", async (_name, token) => {
  await expect(deletePlant(1n, token)).rejects.toBe(unavailable);
});

test.each<{ name: string; token: () => string | Promise<string> }>([
  { name: "a function", token: () => "secret-token\n" },
  { name: "an async function", token: () => Promise.resolve("secret-token\n") },
])("the error for an invalid token from $name does not quote it", async ({ token }) => {
  await expect(deletePlant(1n, token)).rejects.toThrow(/the token (?!.*secret)/);
});
