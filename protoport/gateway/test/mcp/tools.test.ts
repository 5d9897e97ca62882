import { create, type DescMethod, setExtension } from "@bufbuild/protobuf";
import { FieldOptionsSchema, MethodOptions_IdempotencyLevel } from "@bufbuild/protobuf/wkt";
import { field, FieldRulesSchema } from "@bufbuild/protovalidate/gen/buf/validate/validate_pb.js";
import { type ConnectRouter, createContextKey } from "@connectrpc/connect";
import { describe, expect, test } from "vitest";
import { GreenhouseService } from "../../../examples/gen/greenhouse/v1/greenhouse_pb.ts";
// oxfmt-ignore
import { exchangeHttp1, KeptConnections, serviceIn, shared, startGreenhouse, statelessRequest, stringField,
  type TestGreenhouse } from "@protoport/testing";
import { type Admit, createGateway, type GatewayOptions } from "../../src/index.ts";
import { createMcp, type McpOptions } from "../../src/mcp/index.ts";
import { streamDefaults, streamLimitsOf } from "../../src/mcp/options.ts";
import { openValidation } from "../../src/validation/index.ts";
import { pageOf, serveDescribed } from "./described-tools.ts";

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

// Tool names and hints, and application functions that return no boolean.

const { NO_SIDE_EFFECTS, IDEMPOTENT } = MethodOptions_IdempotencyLevel;

/** Returns rules for the RPC `hostile.v1.S.A`, one for each HTTP method. */
function rulesOf(kinds: readonly string[]): object {
  const patterns = kinds.map((kind) => ({ pattern: { case: "custom", value: { kind, path: `/${kind}` } } }));
  const [first, ...additionalBindings] = patterns;
  return first === undefined ? {} : { rest: { rules: [{ selector: "hostile.v1.S.A", ...first, additionalBindings }] } };
}

const readOnly = { readOnlyHint: true };
const deletes = { destructiveHint: true, idempotentHint: true };

test.each([
  { name: "GET", kinds: ["GET"], want: readOnly },
  { name: "QUERY", kinds: ["QUERY"], want: readOnly },
  { name: "POST and GET", kinds: ["POST", "GET"], want: readOnly },
  { name: "DELETE", kinds: ["DELETE"], want: deletes },
  { name: "GET and DELETE", kinds: ["GET", "DELETE"], want: deletes },
  { name: "DELETE and NO_SIDE_EFFECTS", kinds: ["DELETE"], level: NO_SIDE_EFFECTS, want: deletes },
  { name: "PUT", kinds: ["PUT"], want: { idempotentHint: true } },
  { name: "any HTTP method (*)", kinds: ["*"], want: {} },
  { name: "only NO_SIDE_EFFECTS", kinds: [], level: NO_SIDE_EFFECTS, want: readOnly },
  { name: "only IDEMPOTENT", kinds: [], level: IDEMPOTENT, want: { idempotentHint: true } },
])("for an RPC with $name, the hints $want are set in its tool", async ({ kinds, level, want }) => {
  const rpc = { name: "A", ...(level !== undefined && { options: { idempotencyLevel: level } }) };
  const { tools } = await pageOf(serveDescribed([rpc], { gateway: rulesOf(kinds) }));
  expect(tools[0]?.["annotations"]).toEqual(want);
});

test("hints from the option tools override the HTTP method's hints", async () => {
  const hints = { readOnly: false, openWorld: false };
  const { tools } = await pageOf(
    serveDescribed([{ name: "A" }], { mcp: { tools: () => ({ hints }) }, gateway: rulesOf(["GET"]) }),
  );
  expect(tools[0]?.["annotations"]).toEqual({ readOnlyHint: false, openWorldHint: false });
});

test("a tool's schemas contain validation rules only for its input", async () => {
  const options = create(FieldOptionsSchema);
  setExtension(options, field, create(FieldRulesSchema, { type: { case: "string", value: { minLen: 2n } } }));
  const messages = [{ name: "M", field: [{ ...stringField("text", 1), options }] }];
  const mcp = { tools: ["*"], validation: await openValidation() };
  const { tools } = await pageOf(serveDescribed([{ name: "A" }], { messages, mcp }));
  expect(tools[0]).toMatchObject({
    inputSchema: { properties: { text: { type: "string", minLength: 2 } } },
    outputSchema: { properties: { text: { type: "string" } } },
  });
  expect(tools[0]).not.toHaveProperty("outputSchema.properties.text.minLength");
});

test.each([
  { name: "a package with a leading underscore", file: { package: "_7.v1" }, want: /^v1_S_A_[0-9a-f]{8}$/ },
  { name: "a long package truncated at digits", file: { package: `a${"7".repeat(80)}` }, want: /^S_A_[0-9a-f]{8}$/ },
])("for $name, the tool's name starts with a letter", async ({ file, want }) => {
  const type = `.${file.package}.M`;
  const rpc = { name: "A", inputType: type, outputType: type };
  const { tools } = await pageOf(serveDescribed([rpc], { file, mcp: { tools: [`${file.package}.*`] } }));
  expect(tools[0]?.["name"]).toMatch(want);
});

/** Returns options as a program without types passes them. */
function untyped(options: object): McpOptions {
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- This is the purpose of the function.
  return options as McpOptions;
}

test.each([
  {
    name: "an async function as tools",
    options: { tools: async () => false },
    error: "tools of createMcp must be synchronous",
  },
  {
    name: "a tools function that returns nothing",
    options: { tools: () => undefined },
    error: "requires an object of options",
  },
  ...[Number.NaN, 0, -1, 1.5, Infinity, "7"].flatMap((limit) =>
    ["maxMessages", "maxBytes", "timeoutMs"].map((name) => ({
      name: `the limit ${name} ${JSON.stringify(limit)}`,
      options: { tools: [], stream: { [name]: limit } },
      error: `stream.${name} of createMcp must be a positive integer, got ${String(limit)}`,
    })),
  ),
])("options with $name are refused by createMcp", ({ options, error }) => {
  expect(() => serveDescribed([{ name: "A" }], { mcp: untyped(options) })).toThrow(error);
});

test("an undefined stream limit has the default value", () => {
  const stream = untyped({ stream: { maxMessages: undefined, maxBytes: undefined, timeoutMs: 7 } }).stream;
  expect(streamLimitsOf(stream)).toEqual({ ...streamDefaults, timeoutMs: 7 });
});

/** Comments that count how often each RPC's comment is read, which is once for each definition that is created. */
class CountedComments extends Map<string, string> {
  readonly reads: Record<string, number> = {};

  override get(name: string): string | undefined {
    if (name.startsWith("hostile.v1.S.")) this.reads[name] = (this.reads[name] ?? 0) + 1;
    return super.get(name);
  }
}

test.each([
  { name: "all callers receive the same list", isListed: undefined },
  { name: "the list depends on the caller", isListed: () => true },
])("if $name, tools/list creates each tool definition once", async ({ isListed }) => {
  const rpcs = Array.from({ length: 250 }, (_, at) => ({ name: `A${at}` }));
  const comments = new CountedComments();
  const fetch = serveDescribed(rpcs, { mcp: { tools: ["*"], comments, ...(isListed && { isListed }) } });
  const readAll = async (): Promise<string[]> => {
    const pages = [undefined, "100", "200"].map((cursor) => pageOf(fetch, cursor));
    return (await Promise.all(pages)).map(({ text }) => text);
  };
  const first = await readAll();
  expect([Object.keys(comments.reads).length, await readAll()]).toEqual([250, first]);
  await pageOf(fetch, "50");
  expect(new Set(Object.values(comments.reads))).toEqual(new Set([1]));
});

test.each([
  { name: "true", result: true, want: ["hostile_v1_S_A"] },
  { name: "false", result: false, want: [] },
  { name: "undefined", result: undefined, want: [] },
  { name: "1", result: 1, want: [] },
])("a function isListed that returns $name results in $want from tools/list", async ({ result, want }) => {
  const mcp = untyped({ tools: ["*"], isListed: () => result });
  expect((await pageOf(serveDescribed([{ name: "A" }], { mcp }))).tools.map(({ name }) => name)).toEqual(want);
});

test("a function isListed that returns a promise fails tools/list", async () => {
  const errors: string[] = [];
  const mcp = untyped({ tools: ["*"], isListed: async () => true });
  const gateway: Partial<GatewayOptions> = { onFault: (fault) => void errors.push(String(fault)) };
  const page = await pageOf(serveDescribed([{ name: "A" }], { mcp, gateway }));
  expect(JSON.parse(page.text)).toEqual({ jsonrpc: "2.0", id: 1, error: { code: -32603, message: "internal error" } });
  expect(errors).toEqual(["TypeError: isListed must be synchronous, got a promise"]);
});

// Names for tools from several services, of which a later one may be hostile.

/** Returns the method that a name such as `package.Service.Method` denotes. */
function methodOf(fullName: string): DescMethod {
  const [name = "", serviceName = "", ...parts] = fullName.split(".").toReversed();
  const packageName = parts.toReversed().join(".");
  const type = `.${packageName}.M`;
  const method = [{ name, inputType: type, outputType: type }];
  const messageType = [{ name: "M" }];
  const file = { name: "a.proto", package: packageName, messageType, service: [{ name: serviceName, method }] };
  return serviceIn(file, `${packageName}.${serviceName}`).methods[0] ?? expect.unreachable("no method");
}

function namesOf(fullNames: readonly string[], tools: McpOptions["tools"] = ["*"]): readonly string[] {
  return [...createMcp({ tools }).toolNamesOf(fullNames.map(methodOf)).values()];
}

const long = `a.${"b".repeat(60)}.Long.Get`;
const [hashed = ""] = namesOf([long]);

test("a long tool name ends with a hash of its RPC's name", () =>
  expect(hashed).toBe(`${"b".repeat(46)}_Long_Get_18711dfc`));

const [lookalike = ""] = namesOf(["shop_v1.Orders.Get0"]);

test.each([
  ["shop_v1.Orders.Get0", "shop_v1_Orders_Get0_a2c92dd8"],
  ["shop.v1_Orders.Get0", expect.stringMatching(/^shop_v1_Orders_Get0_[0-9a-f]{8}$/)],
  ["shop.v1.Orders.Get0", "shop_v1_Orders_Get0"],
  // The last part of the name is similar to a hash.
  [lookalike.replaceAll("_", "."), expect.stringMatching(/^shop_v1_Orders_Get0_a2c92dd8_[0-9a-f]{8}$/)],
  [long.replace("Long.Get", "Long_Get"), expect.stringMatching(/^b{46}_Long_Get_[0-9a-f]{8}$/)],
])("the tool name of $0 does not depend on other RPCs", (name, expected) => {
  const similar = ["shop_v1.Orders.Get0", "shop.v1_Orders.Get0", "shop.v1.Orders.Get0"];
  const others = [...similar, long, lookalike.replaceAll("_", ".")];
  const alone = namesOf([name]);
  expect(alone).toEqual([expected]);
  const last = namesOf([...others.filter((other) => other !== name), name]);
  expect([last.slice(-1), new Set(last).size]).toEqual([alone, last.length]);
});

test.each([
  { name: "a.b.C.Get", given: "a_b_C_Get" },
  { name: "a.b_C.Get", given: namesOf(["a.b_C.Get"])[0] ?? "" },
])("the default tool name of $name avoids names from the program", ({ name, given }) => {
  const tools: McpOptions["tools"] = ({ parent }) => parent.typeName !== "z.Z" || { name: given };
  expect(namesOf([name, "z.Z.Run"], tools)).toEqual([expect.stringMatching(/^a_b_C_Get_[0-9a-f]{8}$/), given]);
});
