import { describe, expect, test } from "vitest";
import { createJsonMessageWriter } from "../../src/protobuf/messages/json/index.ts";
import { createMcp } from "../../src/mcp/index.ts";
// oxfmt-ignore
import { Dice, initializedRequest, KeptConnections, kitchenSinkRegistry, postMcp, shared, startKitchenSink
} from "@protoport/testing";
import { rollMessage } from "../../../testing/src/gateway/random-message.ts";
import { SinkSchema } from "../../../testing/src/gen/kitchensink/v1/kitchen_sink_pb.ts";

// Random messages, and messages that no well-meaning client sends.

const write = createJsonMessageWriter(SinkSchema, { registry: kitchenSinkRegistry });
const tool = "kitchensink_v1_KitchenSink_Create";
const connections = shared(() => new KeptConnections());
const gateway = shared(() => startKitchenSink({ mcp: createMcp({ tools: ["kitchensink.v1.KitchenSink.Create"] }) }));

async function postJson(path: string, body: string): Promise<{ httpStatus: number; json: Record<string, unknown> }> {
  const response = await connections.exchange(gateway.address, "1.1", { ...postMcp(body), path });
  return { httpStatus: response.httpStatus, json: JSON.parse(String(response.body)) };
}

test.each(Array.from({ length: 150 }, (_, seed) => seed))(
  "random message %i as arguments has the same result as over REST",
  async (seed) => {
    const message = rollMessage(new Dice(seed), SinkSchema);
    let text: string;
    try {
      text = write(message);
    } catch {
      // The message has no JSON form. For example, an Any has an unknown type.
      return;
    }
    const rest = await postJson("/v1/sinks", text);
    const params = `{"name":"${tool}","arguments":${text}}`;
    const called = await postJson("/mcp", `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":${params}}`);
    const { result, error } = called.json;
    if (rest.httpStatus === 200) expect(result).toMatchObject({ structuredContent: rest.json });
    else expect(JSON.stringify(error ?? result)).toMatch(/"isError":true|"code":-32700/);
    expect(called.httpStatus).toBeLessThan(500);
  },
);

describe("a hostile client", () => {
  const long = "x".repeat(64 * 1024 - 512);
  const withProto = '{"jsonrpc":"2.0","id":1,"method":"ping","__proto__":{"id":2},"params":{"__proto__":[]}}';

  test.each([
    ["a tool name of 64 KiB", initializedRequest("tools/call", { name: long }), -32602],
    ["a method name of 64 KiB", initializedRequest(long), -32601],
    ["a cursor of 64 KiB", initializedRequest("tools/list", { cursor: long }), -32602],
    ["a protocol version of 64 KiB", initializedRequest("initialize", { protocolVersion: long }), undefined],
    ["__proto__ as the tool name", initializedRequest("tools/call", { name: "__proto__" }), -32602],
    ["__proto__ as a JSON key", postMcp(withProto), undefined],
  ])("that sends %s gets a response below 1 KiB", async (_name, request, code) => {
    const response = await connections.exchange(gateway.address, "1.1", request);
    const { error }: { error?: { code: number } } = JSON.parse(String(response.body));
    expect([response.httpStatus, error?.code]).toEqual([200, code]);
    expect(response.body.byteLength).toBeLessThan(1024);
  });
});
