import { afterAll, beforeAll, describe, expect, onTestFinished, test } from "vitest";
import { GreenhouseService } from "../../../examples/gen/greenhouse/v1/greenhouse_pb.ts";
import { createTestGateway, statelessRequest, createTempFolder } from "@protoport/testing";
import { descriptorSetOf, ProxyCommand, respondWatered, startScriptedServer } from "@protoport/testing/proxy";
import { readSamples } from "../../../testing/src/telemetry/samples.ts";

const folder = createTempFolder();
const file = folder.file("proxy.yaml");
const descriptors = folder.write("greenhouse.binpb", descriptorSetOf(GreenhouseService.file));
const greenhouse = GreenhouseService.typeName;
const reading = "/sensors/1/reading";
let received = new Headers();

const createGreenhouse = (degreesCelsius: number) =>
  createTestGateway({
    routes: (router) =>
      void router.service(GreenhouseService, {
        getReading: ({ sensor }, { requestHeader, responseHeader }) => {
          received = requestHeader;
          responseHeader.set("x-internal", "1");
          return { sensor, degreesCelsius };
        },
        waterBed: ({ bed }) => ({ bed, liters: 3 }),
      }),
  });

const [warm, cold] = [createGreenhouse(30), createGreenhouse(3)];
let [warmUrl, coldUrl] = ["", ""];
let command: ProxyCommand;
let [baseUrl, adminUrl] = ["", ""];

function configure(settings: object, upstream: object = {}): void {
  const rateLimit = { perAddress: 1_000_000 };
  const common = { listen: { port: 0 }, admin: { port: 0 }, drain: { delayMs: 0, timeoutMs: 0 }, rateLimit };
  const upstreams = [{ addresses: [warmUrl], descriptors, ...upstream }];
  folder.write("proxy.yaml", JSON.stringify({ ...common, upstreams, ...settings }));
}

/** Reloads the file, and returns the first new line that matches. */
async function reload(expected: RegExp): Promise<string | undefined> {
  const { length } = command.lines;
  command.hangUp();
  return (await command.waitForLine(expected, length))?.input;
}

async function applyFile(): Promise<void> {
  expect(await reload(/configuration/)).toBe("configuration reloaded");
}

beforeAll(async () => {
  const bound = await Promise.all([warm, cold].map((each) => each.listen({ host: "127.0.0.1" })));
  [warmUrl = "", coldUrl = ""] = bound.map(({ port }) => `http://127.0.0.1:${port}`);
  configure({});
  command = new ProxyCommand(["--config", file]);
  adminUrl = await command.url(/^health and metrics at (\S+)/);
  baseUrl = await command.serving;
});
afterAll(async () => {
  await command[Symbol.asyncDispose]();
  await Promise.all([warm.close(), cold.close()]);
  folder[Symbol.dispose]();
});

const ask = (path: string, init?: RequestInit): Promise<Response> => fetch(`${baseUrl}${path}`, init);

async function statusOf(path: string, init?: RequestInit): Promise<number> {
  const response = await ask(path, init);
  await response.bytes();
  return response.status;
}

const bodyOf = async (path: string, init?: RequestInit): Promise<string> => await (await ask(path, init)).text();

async function fieldOf(name: string, path: string, init?: RequestInit): Promise<string | null> {
  const response = await ask(path, init);
  await response.bytes();
  return response.headers.get(name);
}

async function sentField(name: string): Promise<string | null> {
  expect(await statusOf(reading)).toBe(200);
  return received.get(name);
}

const samplesOf = async (name: string) =>
  readSamples(await (await fetch(`${adminUrl}/metrics`)).text()).filter((sample) => sample.name === name);

interface Change {
  readonly name: string;
  readonly settings?: object;
  readonly upstream?: () => object;
  readonly observe: () => Promise<unknown>;
  readonly before: unknown;
  readonly after: unknown;
}

const post = (body: string): RequestInit => ({ method: "POST", headers: { "content-type": "application/json" }, body });
const list = statelessRequest("tools/list");
const listTools: RequestInit = { method: "POST", headers: Object.fromEntries(list.header), body: String(list.body) };
const origin = "https://shop.example";
const long = "x".repeat(2_000);

describe("a reloaded configuration file", () => {
  test.each<Change>(
    // oxfmt-ignore
    [
      { name: "docs", settings: { docs: false }, observe: () => statusOf("/openapi.json"), before: 200, after: 404 },
      { name: "rest.options", settings: { rest: { options: ["lenient"] } },
        observe: () => statusOf(`${reading}?unknown=1`), before: 400, after: 200 },
      { name: "rest.json.int64", settings: { rest: { json: { int64: "numbers" } } },
        observe: () => bodyOf("/beds/7:water", post("{}")), before: '{"bed":"7","liters":3}',
        after: '{"bed":7,"liters":3}' },
      { name: "requestBytes", settings: { requestBytes: 1_024 },
        observe: () => statusOf("/beds/7:water", post(JSON.stringify({ note: long }))), before: 200, after: 413 },
      { name: "mcp.tools", settings: { mcp: { tools: [`${greenhouse}.GetReading`] } },
        observe: () => statusOf("/mcp", listTools), before: 404, after: 200 },
      { name: "cors.origins", settings: { cors: { origins: [origin] } },
        observe: () => fieldOf("access-control-allow-origin", reading, { headers: { origin } }), before: null,
        after: origin },
      { name: "rateLimit.perAddress", settings: { rateLimit: { perAddress: 0.001 } },
        observe: async () => [await statusOf(reading), await statusOf(reading)], before: [200, 200],
        after: [200, 429] },
      { name: "methodConfig", settings: { methodConfig: [{ name: [{ service: greenhouse }], timeout: "5s" }] },
        observe: async () => /^(?:[45]S|[45]\d{3}m|[45]\d{6}u)$/.test((await sentField("grpc-timeout")) ?? ""),
        before: false, after: true },
      { name: "upstreams[].addresses", upstream: () => ({ addresses: [coldUrl] }), observe: () => bodyOf(reading),
        before: '{"sensor":"1","degreesCelsius":30}', after: '{"sensor":"1","degreesCelsius":3}' },
      { name: "upstreams[].requestHeader", upstream: () => ({ requestHeader: { set: { "x-set": "1" } } }),
        observe: () => sentField("x-set"), before: null, after: "1" },
      { name: "upstreams[].responseHeader", upstream: () => ({ responseHeader: { deny: ["x-internal"] } }),
        observe: () => fieldOf("x-internal", reading), before: "1", after: null },
    ],
  )("changes $name, and a second reload changes it back", async (change) => {
    configure(change.settings ?? {}, change.upstream?.());
    await applyFile();
    expect(await change.observe()).toEqual(change.after);
    configure({});
    await applyFile();
    expect(await change.observe()).toEqual(change.before);
  });
});

describe("a refused configuration file", () => {
  test.each<[name: string, write: () => void, problem: RegExp]>([
    ["with an unknown setting", () => configure({ lisen: 1 }), /lisen is not a setting; did you mean "listen"\?/],
    ["with another header limit", () => configure({ headerBytes: 5_000 }), /headerBytes needs a restart to change/],
    [
      "with an unreachable upstream for reflection",
      () => configure({}, { addresses: ["http://127.0.0.1:1"], descriptors: "reflection" }),
      /server reflection failed: \[unavailable\] cannot connect/,
    ],
    ["without content", () => void folder.write("proxy.yaml", ""), /proxy\.yaml is empty/],
  ])("%s is logged, and the previous configuration stays in use", async (_name, write, problem) => {
    const isApplied = async (): Promise<unknown> =>
      (await samplesOf("gateway_file_reload_successful")).map(({ value }) => value);
    configure({ docs: false });
    await applyFile();
    write();
    const logged = await reload(/^cannot reload the configuration/);
    expect(logged).toMatch(problem);
    expect(logged).toMatch(/; the previous one stays in use$/);
    expect([await isApplied(), await statusOf(reading), await statusOf("/openapi.json")]).toEqual([[0], 200, 404]);
    configure({});
    await applyFile();
    expect([await isApplied(), await statusOf("/openapi.json")]).toEqual([[1], 200]);
  });
});

/** Removes the changes of a test, because all tests share the command. */
async function restore(): Promise<void> {
  configure({});
  await applyFile();
}

test("an upstream that a reload removes loses its connections and metrics", async () => {
  onTestFinished(restore);
  expect([await statusOf(reading), warm.load.connections.http2]).toEqual([200, 1]);
  configure({}, { addresses: [coldUrl] });
  await applyFile();
  await expect.poll(() => warm.load.connections.http2, { interval: 5 }).toBe(0);
  for (const name of ["gateway_upstream_connections", "gateway_descriptors_reload_successful"])
    expect((await samplesOf(name)).map(({ labels }) => labels["upstream"])).toEqual([coldUrl]);
  // The removed upstream is closed, and does not affect readiness.
  expect((await fetch(`${adminUrl}/readyz`)).status).toBe(200);
});

test("an upstream with unchanged settings keeps its connection after a reload", async () => {
  await using server = await startScriptedServer(respondWatered);
  onTestFinished(restore);
  const upstream = { addresses: [server.baseUrl] };
  const water = (): Promise<number> => statusOf("/beds/7:water", post("{}"));
  configure({}, upstream);
  await applyFile();
  expect(await water()).toBe(200);
  configure({ accessLog: "all" }, upstream);
  await applyFile();
  const { length } = command.lines;
  expect(await water()).toBe(200);
  expect(await command.waitForLine(/"path":"\/beds\/7:water"/, length)).toBeDefined();
  expect(server.connections).toBe(1);
});
