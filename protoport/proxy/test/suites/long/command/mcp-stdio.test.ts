import { Code, ConnectError } from "@connectrpc/connect";
import { describe, expect, onTestFinished, test, vi } from "vitest";
import { within } from "../../../../../testing/src/deadline.ts";
import { reasonOf } from "../../../../../testing/src/gateway/call-end.ts";
import { statelessMeta } from "../../../../../testing/src/gateway/mcp.ts";
import { call, createGreenhouse, openStdio } from "../../../../../testing/src/gateway/stdio-peer.ts";
import { proxyCommand } from "../../../../src/command/program.ts";

describe("MCP on standard input and output", () => {
  test("responds to each request in one line, in stateful and stateless revisions", async () => {
    await using client = openStdio(createGreenhouse());
    client.send({ jsonrpc: "2.0", id: 1, method: "initialize", params: { protocolVersion: "2025-11-25" } });
    expect(await client.read()).toMatchObject({ id: 1, result: { protocolVersion: "2025-11-25" } });
    client.send({ jsonrpc: "2.0", method: "notifications/initialized" });
    client.send({ jsonrpc: "2.0", id: "a", method: "ping" });
    expect(await client.read()).toEqual({ jsonrpc: "2.0", id: "a", result: {} });
    client.send("");
    client.send({ jsonrpc: "2.0", id: 2, method: "server/discover", params: { _meta: statelessMeta } });
    expect(await client.read()).toMatchObject({ id: 2, result: { resultType: "complete" } });
    client.send(call(3, "GetReading", { sensor: "ä" }));
    expect(await client.read()).toMatchObject({ id: 3, result: { structuredContent: { sensor: "ä" } } });
  });

  test("writes a stream's progress and result", async () => {
    await using client = openStdio(createGreenhouse());
    client.send(call(1, "WatchReadings", { sensor: "a", count: 2 }, { progressToken: "p" }));
    for (const progress of [1, 2]) {
      expect(await client.read()).toMatchObject({ method: "notifications/progress", params: { progress } });
    }
    expect(await client.read()).toMatchObject({ id: 1, result: { structuredContent: { messages: [{}, {}] } } });
  });

  test("cancels a call on notifications/cancelled, and writes no response", async () => {
    const greenhouse = createGreenhouse();
    await using client = openStdio(greenhouse);
    client.send(call("x", "WatchReadings", { sensor: "endless", count: 1 }));
    const { signal } = await within(greenhouse.begun, "the handler");
    client.send({ jsonrpc: "2.0", method: "notifications/cancelled", params: { requestId: "x" } });
    expect(ConnectError.from(await reasonOf(signal)).code).toBe(Code.Canceled);
    client.send({ jsonrpc: "2.0", id: 2, method: "ping" });
    expect(await client.read()).toMatchObject({ id: 2, result: {} });
  });

  test("cancels running calls and queued requests", async () => {
    await using client = openStdio(createGreenhouse());
    for (let id = 1; id <= 32; id++) client.send(call(id, "WatchReadings", { sensor: "endless", count: 1 }));
    for (const id of [33, 34]) client.send(call(id, "GetReading", { sensor: String(id) }));
    for (const requestId of [33, 1]) {
      client.send({ jsonrpc: "2.0", method: "notifications/cancelled", params: { requestId } });
    }
    expect(await client.read()).toMatchObject({ id: 34, result: { structuredContent: { sensor: "34" } } });
  });

  test.each([
    { name: "a line that is not JSON", line: "{", error: { code: -32700 }, id: undefined },
    { name: "a batch", line: "[]", error: { code: -32600 }, id: undefined },
    { name: "a value that is not an object", line: "7", error: { code: -32700 }, id: undefined },
    {
      name: "parameters that are null",
      line: '{"jsonrpc":"2.0","id":7,"method":"a","params":null}',
      error: { code: -32601 },
      id: 7,
    },
    { name: "an unknown method", line: '{"jsonrpc":"2.0","id":7,"method":"a\\nb"}', error: { code: -32601 }, id: 7 },
    {
      name: "an unknown tool whose name is not a valid header value",
      line: JSON.stringify({ ...call(7, "GetReading", {}), params: { name: "ä\n", _meta: statelessMeta } }),
      error: { code: -32602, message: "unknown tool" },
      id: 7,
    },
  ])("responds to $name with an error", async ({ line, error, id }) => {
    await using client = openStdio(createGreenhouse());
    client.send(line);
    expect(await client.read()).toMatchObject({ error, ...(id !== undefined && { id }) });
  });

  test("sends the token from the environment with each call", async () => {
    await using client = openStdio(createGreenhouse(), { token: "secret" });
    client.send(call(1, "GetReading", { sensor: "token" }));
    expect(await client.read()).toMatchObject({ result: { structuredContent: { sensor: "Bearer secret" } } });
  });

  test.each([1, "$'"])("the id %j is returned in the error for a refused request", async (id) => {
    const gateway = createGreenhouse((authorization) => {
      if (authorization === null) throw new ConnectError("who are you", Code.Unauthenticated);
    });
    await using client = openStdio(gateway);
    client.send(call(id, "GetReading", {}));
    expect(await client.read()).toEqual({ jsonrpc: "2.0", id, error: { code: -32600, message: "who are you" } });
  });

  test("reports a line that is too long, and stops", async () => {
    const errors: string[] = [];
    const client = openStdio(createGreenhouse(), { errors });
    const chunk = "x".repeat(1024 * 1024);
    for (let sent = 0; sent < 9; sent += 1) client.input.write(chunk);
    await within(client.done, "the server");
    expect(errors).toEqual(["cannot read a message of the MCP client: a line must be at most 8388608 characters"]);
  });

  test.each([
    { name: "the gateway's fetch fails", fetch: () => Promise.reject(new Error("reset")) },
    {
      name: "the gateway's response is reset",
      fetch: async () =>
        new Response(new ReadableStream({ pull: (controller) => controller.error(new Error("reset")) })),
    },
  ])("returns an error if $name during the request", async ({ fetch }) => {
    await using client = openStdio({ fetch });
    client.send({ jsonrpc: "2.0", method: "notifications/initialized" });
    client.send({ jsonrpc: "2.0", id: "a", method: "ping" });
    expect(await client.read()).toEqual({
      jsonrpc: "2.0",
      id: "a",
      error: { code: -32603, message: "the response was interrupted" },
    });
  });
});

test.each(["", "two words", "line\n", "ümlaut"])(
  "the invalid MCP_TOKEN %j is rejected and not printed",
  async (token) => {
    vi.stubEnv("MCP_TOKEN", token);
    onTestFinished(() => void vi.unstubAllEnvs());
    const errors: string[] = [];
    const exitCode = await proxyCommand(
      ["--upstream", "http://127.0.0.1:1", "--reflection", "--mcp", "*", "--mcp-stdio"],
      {
        out: () => undefined,
        err: (text) => void errors.push(text),
        stopRequested: () => Promise.resolve("SIGTERM"),
        onHangup: () => undefined,
      },
    );
    const message = "MCP_TOKEN must be a bearer token of letters, digits and -._~+/, or be unset";
    expect([exitCode, errors]).toEqual([2, [message]]);
  },
);
