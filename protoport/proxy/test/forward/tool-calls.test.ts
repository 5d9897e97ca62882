import { Code, ConnectError } from "@connectrpc/connect";
import { describe, expect, onTestFinished, test } from "vitest";
import { file_greenhouse_v1_greenhouse } from "../../../examples/gen/greenhouse/v1/greenhouse_pb.ts";
import { createMcp } from "../../../gateway/src/mcp/index.ts";
import { reasonOf, startGreenhouse, startProxy, waterBedProcedure } from "@protoport/testing/proxy";
import { initializedRequest, initializedRevision, postMcp, toolNameOf, within } from "@protoport/testing";
import { type Address, exchangeHttp1, type Field, openHttp1 } from "@protoport/testing/http";

// Progress and cancellation of tool calls. The gateway has the same tests for its handlers.

const water = toolNameOf(waterBedProcedure);
const watch = "greenhouse_v1_GreenhouseService_WatchReadings";
const session: readonly Field[] = [["mcp-session-id", "8b6f0e9c-52b7-4c1e-9f0a-3f6d1a2b4c5d"]];
type Serving = { readonly address: Address; readonly begun: Promise<AbortSignal>; readonly end: () => void };

async function start(): Promise<Serving> {
  const begun = Promise.withResolvers<AbortSignal>();
  const ended = Promise.withResolvers<void>();
  const handle = async (signal: AbortSignal): Promise<void> => {
    begun.resolve(signal);
    await ended.promise;
  };
  const greenhouse = await startGreenhouse({
    waterBed: async ({ bed }, { signal }) => {
      await handle(signal);
      return { bed };
    },
    async *watchReadings({ sensor }, { signal }) {
      yield { sensor };
      yield { sensor };
      await handle(signal);
    },
  });
  const { address, port } = greenhouse.address;
  const mcp = createMcp({ tools: ["greenhouse.v1.*"] });
  const proxy = await startProxy(`http://${address}:${port}`, [file_greenhouse_v1_greenhouse], { mcp });
  onTestFinished(async () => {
    ended.resolve();
    await proxy[Symbol.asyncDispose]();
    await greenhouse[Symbol.asyncDispose]();
  });
  return { address: proxy.address, begun: begun.promise, end: ended.resolve };
}

const calls = [
  { name: "a unary call", tool: water, args: { bed: "7" } },
  { name: "a stream", tool: watch, args: { sensor: "a" } },
];

describe("a tool call through a proxy", () => {
  test.each(calls)("is cancelled by its client's notification: $name", async ({ tool, args }) => {
    const { address, begun } = await start();
    const call = initializedRequest("tools/call", { name: tool, arguments: args }, session);
    const responding = exchangeHttp1(address, call);
    const signal = await within(begun, "the handler");
    const body = '{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}';
    await exchangeHttp1(address, postMcp(body, [["mcp-protocol-version", initializedRevision], ...session]));
    expect(String((await within(responding, "the response")).body)).toBe("");
    expect(ConnectError.from(await reasonOf(signal)).code).toBe(Code.Canceled);
  });

  test.each(calls)("is cancelled when its client disconnects: $name", async ({ tool, args }) => {
    const { address, begun } = await start();
    using connection = await openHttp1(address);
    connection.request(initializedRequest("tools/call", { name: tool, arguments: args }));
    const signal = await within(begun, "the handler");
    connection.socket.resetAndDestroy();
    expect(ConnectError.from(await reasonOf(signal)).code).toBe(Code.Canceled);
  });

  test("reports each message of a stream as progress before the stream ends", async () => {
    const { address, begun, end } = await start();
    using connection = await openHttp1(address);
    const params = { name: watch, arguments: { sensor: "a" }, _meta: { progressToken: "p" } };
    let received = "";
    connection.socket.on("data", (bytes) => (received += String(bytes)));
    connection.request(initializedRequest("tools/call", params));
    await within(begun, "the handler");
    await expect.poll(() => received.split("notifications/progress").length).toBe(3);
    expect(received).not.toContain('"result"');
    end();
    await expect.poll(() => received).toContain('"structuredContent":{"messages":[{"sensor":"a"},{"sensor":"a"}]}');
  });
});
