import { Code, ConnectError } from "@connectrpc/connect";
import { describe, expect, test } from "vitest";
import { createMcp } from "../../../../../gateway/src/mcp/index.ts";
import { GreenhouseService, eventsOf } from "@protoport/testing/proxy";
import type { ForwardRules } from "../../../../src/create-proxy.ts";
import { exchangeHttp1, type Field, type HttpRequest, statelessRequest } from "@protoport/testing";
import { startProxied } from "../../../support/greenhouses.ts";

const service = "greenhouse_v1_GreenhouseService";
const call = (method: string, args: object, header: readonly Field[] = []): HttpRequest =>
  statelessRequest("tools/call", { name: `${service}_${method}`, arguments: args }, header);

async function start(rules: ForwardRules = {}) {
  const credentials: (string | null)[] = [];
  const implementation: Parameters<typeof startProxied>[0] = {
    waterBed: ({ bed, note }, { requestHeader }) => {
      credentials.push(requestHeader.get("authorization"));
      if (note === "dry") throw new ConnectError("dry", Code.Aborted);
      return { bed };
    },
    async *watchReadings({ count }) {
      for (let at = 1; at <= count; at += 1) yield { degreesCelsius: at };
    },
  };
  const mcp = createMcp({ tools: [`${GreenhouseService.typeName}.*`] });
  const proxy = await startProxied(implementation, { mcp, upstreamOptions: { requestHeader: rules } });
  const exchange = async (request: HttpRequest) => String((await exchangeHttp1(proxy.address, request)).body);
  return { ...proxy, credentials, exchange };
}

describe("a proxy with MCP tools", () => {
  test("lists and calls an upstream's tools", async () => {
    await using proxied = await start();
    expect(JSON.parse(await proxied.exchange(statelessRequest("tools/list")))).toMatchObject({
      result: { tools: ["GetReading", "WaterBed", "WatchReadings"].map((name) => ({ name: `${service}_${name}` })) },
    });
    expect(JSON.parse(await proxied.exchange(call("WaterBed", { bed: "9007199254740993" })))).toMatchObject({
      result: { structuredContent: { bed: "9007199254740993" } },
    });
    expect(JSON.parse(await proxied.exchange(call("WaterBed", { note: "dry" })))).toMatchObject({
      result: { isError: true, content: [{ text: "ABORTED: dry" }] },
    });
    expect(eventsOf(await proxied.exchange(call("WatchReadings", { count: 2 })))).toMatchObject([
      { result: { structuredContent: { messages: [{ degreesCelsius: 1 }, { degreesCelsius: 2 }] } } },
    ]);
  });

  const token = "Bearer of-the-agent";

  test.each<[name: string, want: string | null, requestHeader?: ForwardRules]>([
    ["does not forward the client's token by default", null],
    ["forwards the client's token if allow names its field", token, { allow: ["Authorization"] }],
  ])("%s", async (_name, want, requestHeader) => {
    await using proxied = await start(requestHeader);
    await proxied.exchange(call("WaterBed", {}, [["authorization", token]]));
    expect(proxied.credentials).toEqual([want]);
  });
});
