import { Code, ConnectError } from "@connectrpc/connect";
import { describe, expect, test } from "vitest";
import { createMcp } from "../../../../../gateway/src/mcp/index.ts";
import { file_greenhouse_v1_greenhouse, GreenhouseService, eventsOf, startProxy } from "@protoport/testing/proxy";
import type { ForwardRules } from "../../../../src/create-proxy.ts";
import { exchangeHttp1, type Field, type HttpRequest, startGreenhouse, statelessRequest } from "@protoport/testing";

const service = "greenhouse_v1_GreenhouseService";

function call(method: string, args: object, header: readonly Field[] = []): HttpRequest {
  return statelessRequest("tools/call", { name: `${service}_${method}`, arguments: args }, header);
}

interface Proxied extends AsyncDisposable {
  readonly credentials: (string | null)[];
  exchange(request: HttpRequest): Promise<string>;
}

async function start(rules: ForwardRules = {}): Promise<Proxied> {
  await using opened = new AsyncDisposableStack();
  const credentials: (string | null)[] = [];
  const greenhouse = opened.use(
    await startGreenhouse({
      waterBed: ({ bed, note }, { requestHeader }) => {
        credentials.push(requestHeader.get("authorization"));
        if (note === "dry") throw new ConnectError("dry", Code.Aborted);
        return { bed };
      },
      async *watchReadings({ count }) {
        for (let at = 1; at <= count; at += 1) yield { degreesCelsius: at };
      },
    }),
  );
  const { address, port } = greenhouse.address;
  const proxy = opened.use(
    await startProxy(`http://${address}:${port}`, [file_greenhouse_v1_greenhouse], {
      mcp: createMcp({ tools: [`${GreenhouseService.typeName}.*`] }),
      upstreamOptions: { requestHeader: rules },
    }),
  );
  const all = opened.move();
  return {
    credentials,
    exchange: async (request) => String((await exchangeHttp1(proxy.address, request)).body),
    [Symbol.asyncDispose]: () => all.disposeAsync(),
  };
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
