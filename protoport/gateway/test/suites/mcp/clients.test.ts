import { execFile } from "node:child_process";
import { join } from "node:path";
import { promisify } from "node:util";
import { afterAll, beforeAll, expect, test } from "vitest";
import { openPython } from "@protoport/testing/process";
import { type ClientServer, credential, startClientServer } from "./client-server.ts";
import { inspect } from "./inspector.ts";
import { everyType, expected, greenhouse, type Results } from "./results.ts";
import { callAll, connect1, connect2 } from "./typescript-clients.ts";

// The official MCP clients. They validate each structured result against its tool's schema.

const folder = import.meta.dirname;
let server: ClientServer;
beforeAll(async () => {
  server = await startClientServer();
});
afterAll(async () => await server[Symbol.asyncDispose]());

const connect2For = (revision: string) => (url: string, authorization: string) =>
  connect2(url, revision, authorization);

async function callFromPython(mode: string): Promise<Results> {
  const programs = await openPython(join(folder, "requirements.txt"));
  const args = [join(folder, "client.py"), server.url, credential, mode, JSON.stringify(everyType)];
  const { stdout } = await promisify(execFile)(join(programs, "python"), args, { timeout: 60_000 });
  return JSON.parse(stdout);
}

test.each([
  { name: "the TypeScript client 2 (stateless)", call: () => callAll(server, connect2For("2026-07-28")) },
  { name: "the TypeScript client 2 (with initialize)", call: () => callAll(server, connect2For("2025-11-25")) },
  { name: "the TypeScript SDK 1", call: () => callAll(server, connect1) },
  { name: "the Python client (stateless)", call: () => callFromPython("2026-07-28") },
  { name: "the Python client (with initialize)", call: () => callFromPython("legacy") },
])("$name lists and calls tools", async ({ call }) => expect(await call()).toEqual(expected));

test("the MCP inspector's command line finds no error in the schemas of tools", async () => {
  const list = await inspect(server.url, credential, ["--method", "tools/list", "--strict"]);
  const { tools }: { tools: { name: string }[] } = JSON.parse(list);
  expect(tools.map(({ name }) => name)).toEqual(expected.tools);
});

test("the MCP inspector's command line calls a tool", async () => {
  const args = ["--method", "tools/call", "--tool-name", `${greenhouse}_WaterBed`, "--tool-arg", "bed=7"];
  expect(JSON.parse(await inspect(server.url, credential, args))).toMatchObject({ structuredContent: { bed: "7" } });
});
