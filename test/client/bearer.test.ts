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
  { name: "a function that has the token", id: 2n, token: () => tokens.good },
  { name: "a function that fetches the token", id: 3n, token: () => Promise.resolve(tokens.good) },
])("$name is the credential of every call", async ({ id, token }) => {
  await expect(deletePlant(id, token)).resolves.toBeDefined();
});

test.each(["", "secret-token\n"])("%j is refused at once, and not quoted", (token) => {
  expect(() => bearer(token)).toThrow(/^the token (?!.*secret)/);
});

const away = new ConnectError("the provider is away", Code.Unavailable);

test.each<{ name: string; token: () => string | Promise<string> }>([
  {
    name: "throws",
    token: () => {
      throw away;
    },
  },
  { name: "rejects", token: () => Promise.reject(away) },
])("a function of tokens that $name ends the call with that error", async ({ token }) => {
  await expect(deletePlant(1n, token)).rejects.toBe(away);
});

test.each<{ name: string; token: () => string | Promise<string> }>([
  { name: "returns", token: () => "secret-token\n" },
  { name: "resolves with", token: () => Promise.resolve("secret-token\n") },
])("a call fails without quoting the token when its function $name an invalid one", async ({ token }) => {
  await expect(deletePlant(1n, token)).rejects.toThrow(/the token (?!.*secret)/);
});
