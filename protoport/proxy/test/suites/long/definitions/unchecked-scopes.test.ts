import type { DescService } from "@bufbuild/protobuf";
import { ServiceOptionsSchema } from "@bufbuild/protobuf/wkt";
import { BinaryWriter, WireType } from "@bufbuild/protobuf/wire";
import { afterAll, expect, test } from "vitest";
import { GreenhouseService } from "../../../../../examples/gen/greenhouse/v1/greenhouse_pb.ts";
// oxfmt-ignore
import { descriptorSetOf, greenhouseWithOptions, OrderService, ProxyCommand, restrictedTo, runProxyCommand,
  scopedGreenhouse, serviceWithRoutes, startProxyProcess, startReflectedUpstream } from "@protoport/testing/proxy";
import { exchangeHttp1, statelessRequest, toolNameOf, createTempFolder } from "@protoport/testing";

// The proxy compares the option protoport.auth.v1.required_scopes with authentication.scopes.

const folder = createTempFolder();
afterAll(() => folder[Symbol.dispose]());
const served = GreenhouseService.typeName;
const ofStreams = { WatchReadings: ["read", "watch"], RecordReadings: ["record"] };
const scoped = scopedGreenhouse({ GetReading: [], WaterBed: ["water"], ...ofStreams });
const data = new BinaryWriter().uint32(1).finish();
const invalid = greenhouseWithOptions({ WaterBed: { no: 57386, wireType: WireType.Varint, data } });
const write = (name: string, content: string | Uint8Array): string => JSON.stringify(folder.write(name, content));
type CheckResult = { readonly exitCode: number; readonly errors: readonly string[] };

async function check(services: readonly DescService[], settings: readonly string[]): Promise<CheckResult> {
  const upstreams = services.map(({ typeName, file }) => {
    const descriptors = write(`${typeName}.binpb`, descriptorSetOf(file));
    return `- { addresses: ["http://127.0.0.1:1"], descriptors: ${descriptors} }`;
  });
  write("proxy.yaml", ["upstreams:", ...upstreams, ...settings].join("\n"));
  return await runCheck();
}

async function runCheck(): Promise<CheckResult> {
  const { exitCode, errors } = await runProxyCommand("--config", folder.file("proxy.yaml"), "--check");
  return { exitCode, errors: errors === "" ? [] : errors.replaceAll(folder.path, "DIR").split("\n") };
}

const token = "a-token-of-sufficient-length";
const authentication = ["authentication:", `  tokens: [{ file: ${write("token", token)} }]`];
const option = "the option protoport.auth.v1.required_scopes";
const namesOf = (rpcs: readonly string[]): string => rpcs.map((name) => `${served}.${name}`).join(", ");
const restrictedProblem = (...rpcs: readonly string[]): string =>
  `authentication.scopes must require the scopes that ${option} names for ${namesOf(rpcs)}`;
const undefinedProblem = (...rpcs: readonly string[]): string =>
  `authentication.scopes must name ${namesOf(rpcs)}, which must have ${option} otherwise`;

test.each<[name: string, settings: readonly string[], problems: readonly string[], service?: DescService]>(
  // oxfmt-ignore
  [
    ["scopes in the definition are reported if authentication.scopes is missing", authentication,
      [restrictedProblem("WaterBed", "WatchReadings", "RecordReadings"), undefinedProblem("ControlClimate")]],
    ["scopes that authentication.scopes requires are not reported", [...authentication,
        `  scopes: { ${served}.*: read watch, ${served}.WaterBed: water, ${served}.RecordReadings: other }`],
      [restrictedProblem("RecordReadings")]],
    ["an RPC is reported if authentication.scopes lacks one of its scopes",
      [...authentication, `  scopes: { ${served}.*: watch, ${served}.WaterBed: water record }`],
      [restrictedProblem("WatchReadings", "RecordReadings")]],
    ["scopes of open RPCs are not reported",
      [...authentication, `  open: [/${served}/WaterBed, /${served}/WatchReadings, /${served}/ControlClimate]`],
      [restrictedProblem("RecordReadings")]],
    ["scopes of open services are not reported", [...authentication, `  open: [${served}]`], []],
    ["an invalid scope option is refused", [...authentication, `  scopes: { ${served}.*: water }`],
      [restrictedProblem("WaterBed")], invalid],
    ["no scopes are reported without authentication", [], []],
  ],
)("%s", async (_name, settings, problems, service = scoped) => {
  // The other service has no scopes.
  const { exitCode, errors } = await check([OrderService, service], settings);
  expect(exitCode).toBe(problems.length === 0 ? 0 : 2);
  expect(errors).toEqual(problems.map((problem) => expect.stringMatching(`^DIR/proxy.yaml:\\d+:\\d+: ${problem}$`)));
});

async function statusAt(baseUrl: string, rpc: string): Promise<number> {
  const headers = { authorization: `Bearer ${token}`, "content-type": "application/json" };
  return (await fetch(`${baseUrl}/${served}/${rpc}`, { method: "POST", headers, body: "{}" })).status;
}

const settingsFor = ({ address }: { readonly address: string }): readonly string[] => [
  "listen: { port: 0 }\nadmin: { port: 0 }\ndrain: { delayMs: 0 }",
  `upstreams: [{ addresses: ["${address}"], descriptors: reflection }]`,
  ...authentication,
];

test("with reflection, RPCs with unchecked scopes are logged, and their calls fail", async () => {
  await using upstream = await startReflectedUpstream(scoped);
  const settings = [
    ...settingsFor(upstream),
    `  scopes: { ${served}.WaterBed: water }`,
    `mcp: { tools: ["${served}.*"] }`,
  ];
  write("reflected.yaml", settings.join("\n"));
  await using proxy = await startProxyProcess(["--config", folder.file("reflected.yaml")]);
  const suffix = "; until then, calls of these RPCs fail";
  expect(proxy.command.stderr().trimEnd().split("\n")).toEqual([
    restrictedProblem("WatchReadings", "RecordReadings") + suffix,
    undefinedProblem("ControlClimate") + suffix,
  ]);
  const call = async (path: string, contentType: string, body: string): Promise<string> => {
    const headers = { authorization: `Bearer ${token}`, "content-type": contentType };
    const response = await fetch(proxy.baseUrl + path, { method: "POST", headers, body });
    return `${response.status} ${await response.text()}`;
  };
  expect(await call(`/${served}/WaterBed`, "application/json", "{}")).toMatch(/^200 /);
  expect(await call(`/${served}/GetReading`, "application/json", "{}")).toMatch(/^200 /);
  expect(await call(`/${served}/WatchReadings`, "application/connect+json", "")).toMatch(/"code":"internal"/);
  const params = { name: toolNameOf(`/${served}/WatchReadings`), arguments: {} };
  const { hostname, port } = new URL(proxy.baseUrl);
  const tool = statelessRequest("tools/call", params, [["authorization", `Bearer ${token}`]]);
  expect(String((await exchangeHttp1({ address: hostname, port: Number(port) }, tool)).body)).not.toContain('"result"');
  expect(upstream.calls.map((each) => each.split(" ")[0])).toEqual(["WaterBed", "GetReading"]);
  await expect
    .poll(proxy.command.stderr)
    .toContain(`the option required_scopes of ${served}.WatchReadings is not checked: `);
});

test("calls fail if reloaded descriptors require unchecked scopes", async () => {
  await using upstream = await startReflectedUpstream(scopedGreenhouse({}));
  write("renewed.yaml", settingsFor(upstream).join("\n"));
  await using proxy = await startProxyProcess(["--config", folder.file("renewed.yaml")]);
  const statusOf = () => statusAt(proxy.baseUrl, "WaterBed");
  expect(await statusOf()).toBe(200);
  upstream.offer(scoped);
  proxy.command.process.kill("SIGHUP");
  await expect.poll(proxy.command.stderr).toContain(restrictedProblem("WaterBed", "WatchReadings", "RecordReadings"));
  expect(await statusOf()).toBe(500);
});

const shelves = serviceWithRoutes("shelves.v1.Shelves", { Get: [] });

test.each<{ name: string; from: "file" | "reflection"; isFirst: boolean }>([
  { name: "in a file listed before reflection prevent the start", from: "file", isFirst: true },
  { name: "in a file listed after reflection prevent the start", from: "file", isFirst: false },
  { name: "in the reflection of one of two upstreams are logged", from: "reflection", isFirst: false },
])("unchecked scopes $name", async ({ from, isFirst }) => {
  await using greenhouse = await startReflectedUpstream(scoped);
  await using other = await startReflectedUpstream(shelves);
  const descriptors = from === "file" ? write("mixed.binpb", descriptorSetOf(scoped.file)) : from;
  const items = [
    `- { addresses: ["${greenhouse.address}"], descriptors: ${descriptors}, services: [greenhouse.*] }`,
    `- { addresses: ["${other.address}"], descriptors: reflection, services: [shelves.*] }`,
  ];
  const upstreams = ["upstreams:", ...(isFirst ? items : items.toReversed())];
  write("proxy.yaml", [...upstreams, ...authentication, `  scopes: { ${served}.*: read watch }`].join("\n"));
  const problem = restrictedProblem("WaterBed", "RecordReadings");
  expect(await runCheck()).toEqual(
    from === "file"
      ? { exitCode: 2, errors: [expect.stringMatching(`^DIR/proxy.yaml:\\d+:\\d+: ${problem}$`)] }
      : { exitCode: 0, errors: [`${problem}; until then, calls of these RPCs fail`] },
  );
});

async function reload(proxy: ProxyCommand): Promise<string | undefined> {
  const from = proxy.lines.length;
  proxy.hangUp();
  return (await proxy.waitForLine(/^(?:cannot reload the configuration|configuration reloaded)/, from))?.input;
}

test("a reload with unchecked scopes keeps the previous configuration", async () => {
  await using upstream = await startReflectedUpstream(scoped);
  await using other = await startReflectedUpstream(shelves);
  const reflected = `- { addresses: ["${other.address}"], descriptors: reflection, services: [shelves.*] }`;
  const configure = (services: readonly DescService[], scopes: string): void => {
    const fromFiles = services.map(({ typeName, file }) => {
      const descriptors = write(`${typeName}.binpb`, descriptorSetOf(file));
      return `- { addresses: ["${upstream.address}"], descriptors: ${descriptors} }`;
    });
    const common = ["listen: { port: 0 }", "drain: { delayMs: 0 }", "upstreams:", reflected, ...fromFiles];
    write("reloaded.yaml", [...common, ...authentication, `  scopes: ${scopes}`].join("\n"));
  };
  configure([OrderService], "{}");
  await using proxy = new ProxyCommand(["--config", folder.file("reloaded.yaml")]);
  const url = await proxy.serving;
  const water = () => statusAt(url, "WaterBed");
  const all = `{ ${served}.*: read watch record, ${served}.WaterBed: water }`;
  const [both, refused] = [[OrderService, scoped], "the previous one stays in use"];
  expect(await water()).toBe(404);
  // An upstream is added without scopes, and later an upstream and scopes are removed.
  for (const [services, scopes, outcome, status] of [
    [both, `{ ${served}.*: read watch record }`, `${restrictedProblem("WaterBed")}; ${refused}`, 404],
    [both, all, "configuration reloaded", 200],
    [both, `{ ${served}.*: read watch, ${served}.WaterBed: water }`, restrictedProblem("RecordReadings"), 200],
    [[scoped], all, "configuration reloaded", 200],
  ] as const) {
    configure(services, scopes);
    expect(await reload(proxy)).toContain(outcome);
    expect(await water()).toBe(status);
  }
});

test("a reload that drops the scope of a reflected RPC is refused", async () => {
  await using upstream = await startReflectedUpstream(scoped);
  await using other = await startReflectedUpstream(shelves);
  const configure = (scopes: string, isNew: boolean): void => {
    const items = [
      `- { addresses: ["${upstream.address}"], descriptors: reflection, services: [greenhouse.*] }`,
      ...(isNew ? [`- { addresses: ["${other.address}"], descriptors: reflection, services: [shelves.*] }`] : []),
    ];
    const common = ["listen: { port: 0 }", "drain: { delayMs: 0 }", "upstreams:", ...items];
    write("dropped.yaml", [...common, ...authentication, `  scopes: ${scopes}`].join("\n"));
  };
  // RecordReadings is not checked from the start, so its calls fail.
  configure(`{ ${served}.*: read watch, ${served}.WaterBed: water }`, false);
  await using proxy = new ProxyCommand(["--config", folder.file("dropped.yaml")]);
  const url = await proxy.serving;
  const statuses = () => Promise.all(["WaterBed", "RecordReadings"].map((name) => statusAt(url, name)));
  const want = await statuses();
  expect(want[0]).toBe(200);
  // A second upstream does not change what is checked.
  for (const isNew of [false, true]) {
    configure(`{ ${served}.WatchReadings: read watch, ${served}.WaterBed: water }`, isNew);
    expect(await reload(proxy)).toMatch(undefinedProblem("ControlClimate"));
    configure(`{ ${served}.*: read watch }`, isNew);
    expect(await reload(proxy)).toMatch(restrictedProblem("WaterBed"));
    expect(await statuses()).toEqual(want);
  }
  configure(`{ ${served}.*: read watch, ${served}.WaterBed: water }`, true);
  expect([await reload(proxy), await statuses()]).toEqual(["configuration reloaded", want]);
});

/** Returns an upstream's settings. Port 1 is never called. */
const upstreamOf = (descriptors: string, services: string): string =>
  `{ addresses: ["http://127.0.0.1:1"], descriptors: ${descriptors}, services: [${services}] }`;

test("a reload with unchecked scopes is refused before the proxy is open", async () => {
  const configure = (scopes: string, ...upstreams: readonly string[]): void => {
    const common = ["listen: { port: 0 }", "drain: { delayMs: 0 }", "wait: true", "visibility: { allow: [] }"];
    const items = [`upstreams: [${upstreams.join(", ")}]`];
    write("waiting.yaml", [...common, ...items, ...authentication, `  scopes: ${scopes}`].join("\n"));
  };
  const hidden = structuredClone(scoped.file.proto);
  for (const service of hidden.service) service.options = restrictedTo("INTERNAL", ServiceOptionsSchema);
  const visible = write("visible.binpb", descriptorSetOf(scoped.file, shelves.file));
  const restricted = write("restricted.binpb", descriptorSetOf({ ...scoped.file, proto: hidden }, OrderService.file));
  configure("{ a.*: a }", `{ addresses: ["http://127.0.0.1:1"], descriptors: reflection }`);
  await using proxy = new ProxyCommand(["--config", folder.file("waiting.yaml")]);
  await proxy.waitForLine(/^waiting for descriptors/);
  configure(`{ ${served}.*: read watch record }`, upstreamOf(visible, served));
  proxy.hangUp();
  expect((await proxy.waitForLine(/^cannot reload/))?.input).toMatch(restrictedProblem("WaterBed"));
  // The greenhouse is not a service of the first upstream, and the second one hides it.
  configure("{ shelves.*: a }", upstreamOf(visible, "shelves.*"), upstreamOf(restricted, "greenhouse.*, orders.*"));
  proxy.hangUp();
  expect(await proxy.serving).toBeDefined();
});
