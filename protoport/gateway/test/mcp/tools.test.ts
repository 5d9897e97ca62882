import type { ConnectRouter } from "@connectrpc/connect";
import { createContextKey } from "@connectrpc/connect";
import { describe, expect, test } from "vitest";
import { GreenhouseService } from "../../../examples/gen/greenhouse/v1/greenhouse_pb.ts";
import { type Admit, createGateway } from "../../src/index.ts";
import { createMcp, type McpOptions } from "../../src/mcp/index.ts";
// oxfmt-ignore
import { exchangeHttp1, KeptConnections, shared, startGreenhouse, statelessRequest, type TestGreenhouse
} from "../../../testing/src/index.ts";

// Which RPCs are tools, how they are named and described, and what tools/list contains.

interface ToolList {
  readonly tools: readonly Readonly<Record<string, unknown>>[];
  readonly nextCursor?: string;
  readonly cacheScope: string;
}

async function listOf(
  address: TestGreenhouse["address"],
  connections: KeptConnections,
  params = {},
): Promise<ToolList> {
  const response = await connections.exchange(address, "1.1", statelessRequest("tools/list", params));
  const { result }: { result: ToolList } = JSON.parse(String(response.body));
  return result;
}

async function toolsOf(options: McpOptions): Promise<ToolList["tools"]> {
  using connections = new KeptConnections();
  await using greenhouse = await startGreenhouse({}, { mcp: createMcp(options) });
  return (await listOf(greenhouse.address, connections)).tools;
}

const service = "greenhouse_v1_GreenhouseService";

const selections = [
  { name: "a selector of one RPC", tools: ["greenhouse.v1.GreenhouseService.GetReading"], want: ["GetReading"] },
  { name: "a selector with *", tools: ["greenhouse.*"], want: ["GetReading", "WaterBed", "WatchReadings"] },
  { name: "an empty array", tools: [], want: [] },
  { name: "a function", tools: ({ name }: { name: string }) => name === "WaterBed", want: ["WaterBed"] },
] as const;

test.each(selections)("$name in the option tools lists matching RPCs, not client streams", async ({ tools, want }) => {
  expect((await toolsOf({ tools })).map(({ name }) => name)).toEqual(want.map((name) => `${service}_${name}`));
});

test("a tool's definition is derived from its RPC", async () => {
  const sensor = { type: "string" };
  const degreesCelsius = { anyOf: [{ type: "number" }, { type: "string", enum: ["NaN", "Infinity", "-Infinity"] }] };
  const want = {
    name: `${service}_GetReading`,
    title: "Get Reading",
    description: "The RPC greenhouse.v1.GreenhouseService.GetReading.",
    inputSchema: { type: "object", properties: { sensor } },
    outputSchema: { type: "object", properties: { sensor, degreesCelsius } },
    annotations: { readOnlyHint: true },
  };
  expect(await toolsOf({ tools: ["greenhouse.v1.GreenhouseService.GetReading"] })).toEqual([want]);
});

test("a server stream's tool has an array of messages as output", async () => {
  const [tool] = await toolsOf({ tools: ["greenhouse.v1.GreenhouseService.WatchReadings"] });
  const want = { properties: { messages: { type: "array", items: { type: "object" } } }, required: ["messages"] };
  expect(tool?.["outputSchema"]).toMatchObject(want);
  expect(tool?.["annotations"]).toEqual({});
});

test("the function tools can replace a tool's name, title, description and hints", async () => {
  const hints = { destructive: true, idempotent: true, openWorld: false, readOnly: false };
  const tools = (): object => ({ name: "water", title: "Water!", description: "Waters.\u{E0041}\u202E", hints });
  const comments = new Map([["greenhouse.v1.GreenhouseService.WaterBed", "Waters a bed."]]);
  const [commented] = await toolsOf({ tools: ["greenhouse.v1.GreenhouseService.WaterBed"], comments });
  expect(commented).toMatchObject({ description: "Waters a bed.", annotations: {} });
  const [tool] = await toolsOf({ tools: ({ name }) => name === "WaterBed" && tools() });
  const annotations = { destructiveHint: true, idempotentHint: true, openWorldHint: false, readOnlyHint: false };
  expect(tool).toMatchObject({ name: "water", title: "Water!", description: "Waters.", annotations });
});

test("server/discover reports the options serverInfo and instructions", async () => {
  const options = { serverInfo: { name: "shop", version: "2" }, instructions: "Read before you water." };
  await using greenhouse = await startGreenhouse({}, { mcp: createMcp({ tools: ["*"], ...options }) });
  const { body } = await exchangeHttp1(greenhouse.address, statelessRequest("server/discover"));
  for (const value of Object.values(options)) expect(String(body)).toContain(JSON.stringify(value));
});

// oxfmt-ignore
const wrongOptions = [
  { name: "an unknown option", options: { tool: [] }, error: 'unknown option "tool", did you mean "tools"?' },
  { name: "a missing option tools", options: {}, error: 'createMcp requires the option "tools"' },
  { name: "a path without a slash", options: { tools: [], path: "mcp" },
    error: 'path of createMcp must be similar to "/mcp"' },
  { name: "a selector that matches nothing", options: { tools: ["greenhouse.v2.*"] },
    error: 'mcp: the selector "greenhouse.v2.*" matches no RPC that can be a tool' },
  { name: "a selector of a client stream", options: { tools: ["greenhouse.v1.GreenhouseService.RecordReadings"] },
    error: 'mcp: the selector "greenhouse.v1.GreenhouseService.RecordReadings" matches no RPC that can be a tool' },
  { name: "a name with a dot", options: { tools: () => ({ name: "a.b" }) },
    error: "the name of a tool must be unique" },
  { name: "a name used by two tools", options: { tools: () => ({ name: "a" }) },
    error: "the name of a tool must be unique" },
  { name: "a path that an HTTP rule has", options: { tools: [], path: "/beds/7:water" },
    error: "path of createMcp must be similar" },
];

function routes(router: ConnectRouter): void {
  router.service(GreenhouseService, {});
}

test.each(wrongOptions)("$name is refused by createGateway", ({ options, error }) => {
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- Options as in a program without types.
  expect(() => createGateway({ routes, mcp: createMcp(options as unknown as McpOptions) })).toThrow(error);
});

test("createGateway refuses plain options instead of a createMcp result", () => {
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- A program without types.
  const mcp = { tools: [] } as unknown as ReturnType<typeof createMcp>;
  expect(() => createGateway({ routes, mcp })).toThrow("mcp must be the result of createMcp()");
});

const scopeKey = createContextKey<string | null>(null);

describe("tools/list with the option isListed", () => {
  const admit: Admit = ({ authorization, contextValues }) => void contextValues.set(scopeKey, authorization);
  const isListed: McpOptions["isListed"] = ({ name }, { contextValues }) => contextValues.get(scopeKey) === name;
  const connections = shared(() => new KeptConnections());
  const greenhouse = shared(() =>
    startGreenhouse({}, { admit, mcp: createMcp({ tools: ["greenhouse.*"], isListed }) }),
  );

  test.each(["GetReading", "WaterBed"])('contains only %s, and has cacheScope "private"', async (scope) => {
    const request = statelessRequest("tools/list", {}, [["authorization", scope]]);
    const response = await connections.exchange(greenhouse.address, "1.1", request);
    const { result }: { result: ToolList } = JSON.parse(String(response.body));
    expect([result.tools.map(({ name }) => name), result.cacheScope]).toEqual([[`${service}_${scope}`], "private"]);
  });

  test.each(['"x"', "-1", '"-1"', '"3"', '"00000000"', "{}"])(
    "is refused with the cursor %s in the request",
    async (cursor) => {
      const params = { cursor: JSON.parse(cursor) };
      const response = await connections.exchange(greenhouse.address, "1.1", statelessRequest("tools/list", params));
      const error = { code: -32602, message: "the cursor is not valid" };
      expect(JSON.parse(String(response.body))).toMatchObject({ error });
    },
  );
});
