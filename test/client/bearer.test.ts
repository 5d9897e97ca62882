import { type Client, Code, ConnectError, createClient } from "@connectrpc/connect";
import { createConnectTransport } from "@connectrpc/connect-node";
import { afterAll, beforeAll, expect, test } from "vitest";

import { bearer, PlantService } from "../../src/client/connect.ts";
import { openMemoryStore } from "../../src/stores/index.ts";
import { startPlantServer, type TestPlantServer, tokens } from "../support/server/plant-server.ts";

let server: TestPlantServer;
beforeAll(async () => void (server = await startPlantServer({ store: openMemoryStore(new Set([1n, 2n, 3n])) })));
afterAll(() => server[Symbol.asyncDispose]());

function clientWith(token: Parameters<typeof bearer>[0]): Client<typeof PlantService> {
  const baseUrl = `http://${server.address.address}:${server.address.port}`;
  const transport = createConnectTransport({ baseUrl, httpVersion: "1.1", interceptors: [bearer(token)] });
  return createClient(PlantService, transport);
}

test.each([
  { name: "a token", id: 1n, token: tokens.good },
  { name: "a token from a function", id: 2n, token: () => tokens.good },
  { name: "a token from an async function", id: 3n, token: () => Promise.resolve(tokens.good) },
])("bearer sends $name", ({ id, token }) => expect(clientWith(token).deletePlant({ id })).resolves.toBeDefined());

test("bearer calls a token function for each call", async () => {
  const issued = [tokens.unknown, tokens.good, tokens.narrow];
  const client = clientWith(() => issued.shift() ?? "");
  const codes = [];
  for (const _ of [1, 2, 3]) codes.push(await client.deletePlant({ id: 9n }).catch(({ code }: ConnectError) => code));
  expect(codes).toEqual([Code.Unauthenticated, Code.NotFound, Code.PermissionDenied]);
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
  await expect(clientWith(token).deletePlant({ id: 1n })).rejects.toBe(unavailable);
});

test.each<{ name: string; token: () => string | Promise<string> }>([
  { name: "a function", token: () => "secret-token\n" },
  { name: "an async function", token: () => Promise.resolve("secret-token\n") },
])("the error for an invalid token from $name does not quote it", async ({ token }) => {
  await expect(clientWith(token).deletePlant({ id: 1n })).rejects.toThrow(/the token (?!.*secret)/);
});
