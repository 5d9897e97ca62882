import { mkdirSync, renameSync } from "node:fs";
import type { DescFile } from "@bufbuild/protobuf";
import { afterAll, expect, test } from "vitest";
import { GreenhouseService } from "../../../../../examples/gen/greenhouse/v1/greenhouse_pb.ts";
import { createSigningKey, createTempFolder, startIdentityProvider } from "@protoport/testing/process";
// oxfmt-ignore
import { descriptorSetOf, OrderService, restrictedServices, runProxyCommand, serviceWithRoutes, startProxyProcess,
  startReflectedUpstream } from "@protoport/testing/proxy";

const folder = createTempFolder();
afterAll(() => folder[Symbol.dispose]());
const served = GreenhouseService.typeName;
const set = folder.write("greenhouse.binpb", descriptorSetOf(GreenhouseService.file));
const restricted = restrictedServices().map(({ file }) => file);
const orders = folder.write("orders.binpb", descriptorSetOf(OrderService.file));
const restrictedSet = folder.write("restricted.binpb", descriptorSetOf(...new Set(restricted)));
type Result = { readonly exitCode: number; readonly errors: string };
const check = (...args: readonly string[]): Promise<Result> => run(...args, "--check");

async function run(...args: readonly string[]): Promise<Result> {
  const { exitCode, errors } = await runProxyCommand(...args);
  return { exitCode, errors: errors.replaceAll(folder.path, "DIR") };
}

function configure(upstreams: readonly string[], others = ""): readonly string[] {
  const items = upstreams.map((each, at) => `- { addresses: ["http://127.0.0.1:${at + 1}"], ${each} }\n`);
  return ["--config", folder.write("proxy.yaml", `upstreams:\n${items.join("")}${others}`)];
}

const withRules = (name: string, text: string): string => `rest: { rules: [${folder.write(name, text)}] }`;
const unknownRule = `rules:\n- selector: other.v1.Other.Get\n  get: /other\n`;

test.each<[name: string, args: () => readonly string[], want: string]>(
  // oxfmt-ignore
  [
    ["a misspelled service",
      () => configure([`descriptors: ${set},\n  services: [${served}, greenhouse.v1.GreenhosueService]`]),
      "DIR/proxy.yaml:3:47: upstreams[0].services[1] must match a service of the descriptors, got " +
        `"greenhouse.v1.GreenhosueService", did you mean ${served}?`],
    ["a misspelled package", () => configure([`descriptors: ${set}, services: ["grenhouse.v1.*"]`]),
      'upstreams[0].services[0] must match a service of the descriptors, got "grenhouse.v1.*", did you mean greenhouse.v1.*?'],
    ["a misspelled service in a flag",
      () => ["--upstream", "http://127.0.0.1:1", "--descriptors", set, "--service", "typo"],
      '--service must match a service of the descriptors, got "typo"'],
    ["a misspelled service next to an upstream with reflection",
      () => configure([`descriptors: ${set}, services: [typo]`, "descriptors: reflection, services: [other.*]"]),
      'upstreams[0].services[0] must match a service of the descriptors, got "typo"'],
    ["a misspelled selector in a YAML service config",
      () => configure([`descriptors: ${set}`], withRules("rules.yaml",
        `http:\n  rules:\n  - { selector: ${served}.GetReading, get: "/r/{sensor}" }\n` +
          `  - { get: /r, selector: ${served}.GetReadng }\n  - { get: /o, selector: greenhouse.v1.Other.Get }\n`)),
      `DIR/rules.yaml:4:26: selector must be an RPC of the descriptors, got "${served}.GetReadng", did you mean ` +
        `${served}.GetReading?\n` +
        'DIR/rules.yaml:5:26: selector must be an RPC of the descriptors, got "greenhouse.v1.Other.Get"'],
    ["a misspelled selector in JSON rules",
      () => configure([`descriptors: ${set}`], withRules("rules.json",
        `{"rules": [\n{"selector":"${served}.X","get":"/"}]}`)),
      `DIR/rules.json:2:13: selector must be an RPC of the descriptors, got "${served}.X"`],
    ["a misspelled selector in JSON that is not YAML",
      () => configure([`descriptors: ${set}`], withRules("repeated.json",
        `{"name": "a", "name": "b", "http": {"rules": [{"selector":"${served}.X","get":"/"}]}}`)),
      `DIR/repeated.json: selector must be an RPC of the descriptors, got "${served}.X"`],
  ],
)("%s is rejected with its location", async (_name, args, want) => {
  const { exitCode, errors } = await check(...args());
  expect({ exitCode, errors }).toEqual({ exitCode: 2, errors: expect.stringContaining(want) });
});

test.each([
  { name: "missing", file: `${set}-none`, reason: "ENOENT" },
  { name: "a directory", file: `${set}-folder`, reason: "DIR/greenhouse.binpb-folder is not a regular file" },
])("a descriptor file that is $name is reported, not one whose path is a prefix", async ({ file, reason }) => {
  mkdirSync(`${set}-folder`, { recursive: true });
  const { exitCode, errors } = await check(...configure([`descriptors: ${set}`, `descriptors: ${file}`]));
  const problem = `upstreams[1].descriptors requires a readable file: ${reason}`;
  expect({ exitCode, errors }).toEqual({ exitCode: 1, errors: expect.stringContaining(problem) });
});

const mixins = ["google.longrunning.Operations.GetOperation", "google.cloud.location.Locations.ListLocations"];
const noEffect = (selector: string): string => `the rule for ${selector} has no effect: no served RPC has this name`;
const mistaken = (selector: string): string =>
  `DIR/selectors.yaml:3:15: selector must be an RPC of the descriptors, got "${selector}"`;

test.each<[name: string, selectors: readonly string[], exitCode: number, errors: readonly string[]]>(
  // oxfmt-ignore
  [
    ["log selectors of mixins", mixins, 0, mixins.map(noEffect)],
    ["log the nearest name for a misspelled package", ["grenhouse.v1.GreenhouseService.WaterBed"], 0,
      [`${noEffect("grenhouse.v1.GreenhouseService.WaterBed")}, did you mean ${served}.WaterBed?`]],
    ["log selectors of an unknown subpackage", ["greenhouse.v1.admin.Admin.Get"], 0,
      [noEffect("greenhouse.v1.admin.Admin.Get")]],
    ["refuse a misspelled service in a served package", ["greenhouse.v1.GreenhosueService.WaterBed", ...mixins], 2,
      [`${mistaken("greenhouse.v1.GreenhosueService.WaterBed")}, did you mean ${served}.WaterBed?`]],
    ["refuse a misspelled RPC", [`${served}.WaterBd`], 2,
      [`${mistaken(`${served}.WaterBd`)}, did you mean ${served}.WaterBed?`]],
    ["refuse selectors with a wildcard", [`${served}.*`], 2, [mistaken(`${served}.*`)]],
    ["refuse selectors without a service", ["WaterBed"], 2, [mistaken("WaterBed")]],
  ],
)("serve and check %s", async (_name, selectors, exitCode, errors) => {
  const items = selectors.map((selector, at) => `  - selector: ${JSON.stringify(selector)}\n    get: /x/${at}\n`);
  const rules = withRules("selectors.yaml", `http:\n  rules:\n${items.join("")}`);
  const want = { exitCode, errors: errors.join("\n") };
  expect(await check(...configure([`descriptors: ${set}`], rules))).toEqual(want);
  expect(await run("check", set, "--rules", folder.file("selectors.yaml"))).toEqual(want);
});

test("serve and check log selectors of packages that --service excludes", async () => {
  const selectors = ["greenhouse.v1.GreenhouseService.WaterBed", "greenhouse.v1.GreenhouseService.WaterBd"];
  const items = selectors.map((selector, at) => `  - { selector: ${selector}, get: /x/${at} }\n`);
  const both = folder.write("both.binpb", descriptorSetOf(GreenhouseService.file, OrderService.file));
  const rules = withRules("unselected.yaml", `http:\n  rules:\n${items.join("")}`);
  const want = { exitCode: 0, errors: selectors.map(noEffect).join("\n") };
  expect(await check(...configure([`descriptors: ${both}, services: ["orders.*"]`], rules))).toEqual(want);
  expect(await run("check", both, "--service", "orders.*", "--rules", folder.file("unselected.yaml"))).toEqual(want);
});

const ruleFor = (selector: string, path: string): string => `- { selector: greenhouse.v1.${selector}, get: ${path} }\n`;

test("names of hidden services and RPCs are accepted", async () => {
  const rules = `rules:\n${ruleFor("Maintenance.Rinse", "/rinse")}${ruleFor("GreenhouseService.GetReading", "/reading")}`;
  const services = "services: [greenhouse.v1.GreenhouseService, greenhouse.v1.Maintenance]";
  const token = folder.write("token", "a-token-of-sufficient-length");
  const args = configure(
    [`descriptors: ${restrictedSet}, ${services}`],
    `${withRules("hidden.yaml", rules)}\nvisibility: { allow: [PREVIEW] }\n` +
      `authentication: { tokens: [{ file: ${token} }], open: [/greenhouse.v1.Maintenance/Rinse] }\n`,
  );
  expect(await check(...args)).toEqual({
    exitCode: 0,
    errors: [
      "upstreams[].services has no effect for greenhouse.v1.Maintenance: it is hidden by visibility",
      "the rule for greenhouse.v1.Maintenance.Rinse has no effect: it is hidden by visibility",
      "the rule for greenhouse.v1.GreenhouseService.GetReading has no effect: it is hidden by visibility",
      "authentication.open has no effect for /greenhouse.v1.Maintenance/Rinse: it is hidden by visibility",
      'the visibility label "PREVIEW" has no effect: the definitions use INTERNAL',
    ].join("\n"),
  });
});

test.each(
  // oxfmt-ignore
  [
    ["no labels if two upstreams have no visibility rules", [set, orders], [],
      "visibility has no effect: the definitions have no google.api.visibility rules"],
    ["nothing if one of two upstreams has visibility rules", [orders, restrictedSet], [], ""],
    ["an unknown label with the known labels", [restrictedSet], ["--visibility", "internal"],
      'the visibility label "internal" has no effect: the definitions use INTERNAL'],
    ["nothing for a known label in spaces", [restrictedSet], ["--visibility", " INTERNAL "], ""],
    ["a label if the definitions have none", [set], ["--visibility", "A"],
      'the visibility label "A" has no effect: the definitions have no labels'],
  ],
)("--check reports %s", async (_name, sets, flags, errors) => {
  const args = configure(
    sets.map((each) => `descriptors: ${each}`),
    "visibility: { allow: [] }",
  );
  expect(await check(...args, ...flags)).toEqual({ exitCode: 0, errors });
});

test("unused names of services, RPCs and fields are reported with the nearest name", async () => {
  const settings = [
    "rest:",
    "  services: [{ name: greenhouse.v1.GreenhosueService, options: [lenient] }, { name: greenhouse.* }]",
    "methodConfig:",
    `- { timeout: 1s, name: [{ service: ${served}, method: GetReding }, { service: ${served} }, { service: greenhouse }] }`,
    "- { timeout: 2s, name: [{}] }",
    "authentication:",
    `  tokens: [{ file: ${folder.write("token", "a-token-of-sufficient-length")} }]`,
    `  open: [greenhouse.v1.GreenhouseServic, /${served}/GetReadng, /${served}/GetReading, other.v1.Service]`,
    `  scopes: { ${served}.Getreading: a }`,
    `mcp: { tools: [${served}.GetRaeding, ${served}.GetReading], paramHeaders: { greenhouse.v1.GetReadingRequest.senosr: S } }`,
  ];
  const { exitCode, errors } = await check(...configure([`descriptors: ${set}`], settings.join("\n")));
  expect([exitCode, errors.split("\n")]).toEqual([
    0,
    [
      `rest.services has no effect for greenhouse.v1.GreenhosueService: no served service matches this name, did you mean ${served}?`,
      `methodConfig has no effect for ${served}.GetReding: no served service or RPC has this name, did you mean ${served}.GetReading?`,
      "methodConfig has no effect for greenhouse: no served service or RPC has this name",
      `authentication.open has no effect for greenhouse.v1.GreenhouseServic: no served service or RPC has this name, did you mean ${served}?`,
      `authentication.open has no effect for /${served}/GetReadng: no served service or RPC has this name, did you mean /${served}/GetReading?`,
      "authentication.open has no effect for other.v1.Service: no served service or RPC has this name",
      `authentication.scopes.${served}.Getreading has no effect: no served RPC matches this name, did you mean ${served}.GetReading?`,
      `--mcp ${served}.GetRaeding has no effect: no served RPC matches that can be a tool, did you mean ${served}.GetReading?`,
      "mcp.paramHeaders has no effect for greenhouse.v1.GetReadingRequest.senosr: no tool's request has this field, did you mean greenhouse.v1.GetReadingRequest.sensor?",
    ],
  ]);
});

test("with reflection, unknown names are logged instead of rejected", async () => {
  const service = serviceWithRoutes("orders.v1.Orders", { Get: ["GET /v1/orders/{id}"] });
  await using upstream = await startReflectedUpstream(service);
  const reflected = `- { addresses: ["${upstream.address}"], descriptors: reflection, services: [orders.*, shelves.*] }\n`;
  const file = `- { addresses: ["http://127.0.0.1:1"], descriptors: ${set} }\n`;
  const text = `upstreams:\n${reflected}${file}${withRules("unknown.yaml", unknownRule)}`;
  const shelves = "upstreams[].services has no effect for shelves.*: no served service matches this name";
  const errors = `${shelves}\n${noEffect("other.v1.Other.Get")}`;
  expect(await check("--config", folder.write("reflected.yaml", text))).toEqual({ exitCode: 0, errors });
});

const countOf = (text: string, part: string): number => text.split(part).length - 1;

test("names are checked against the descriptors that the proxy serves", async () => {
  const key = await createSigningKey("RS256", "1");
  using issuer = await startIdentityProvider(key);
  const descriptors = folder.file("replaced.binpb");
  const replaceSet = (...files: readonly DescFile[]): void => {
    folder.write("replaced.next", descriptorSetOf(...files));
    renameSync(folder.file("replaced.next"), descriptors);
  };
  // The keys are fetched after the configuration was read, and before descriptors are served.
  const replaceDuringFetch = (...files: readonly DescFile[]): void =>
    void (issuer.respond = (_, response) => {
      issuer.respond = undefined;
      replaceSet(...files);
      response.end(JSON.stringify({ keys: [key.jwk] }));
    });
  const configureAudience = (audience: string): void => {
    const jwt = `{ issuer: ${issuer.issuer}, keysUrl: ${issuer.keysUrl}, audiences: [${audience}] }`;
    const services = 'services: ["orders.*", "greenhouse.*"]';
    const upstream = `{ addresses: ["http://127.0.0.1:1"], descriptors: ${descriptors}, ${services} }`;
    const settings = [`upstreams: [${upstream}]`, `authentication: { jwt: [${jwt}] }`];
    folder.write("replaced.yaml", ["listen: { port: 0 }", "admin: { port: 0 }", ...settings].join("\n"));
  };
  const both = [OrderService.file, GreenhouseService.file];
  replaceSet(OrderService.file);
  configureAudience("start");
  replaceDuringFetch(...both);
  await using proxy = await startProxyProcess(["--config", folder.file("replaced.yaml")]);
  for (const [at, audience] of ["first", "second"].entries()) {
    configureAudience(audience);
    replaceDuringFetch(OrderService.file);
    proxy.command.process.kill("SIGHUP");
    const problem = 'must match a service of the descriptors, got "greenhouse.*"; the previous one stays in use';
    await expect.poll(() => countOf(proxy.command.stderr(), problem)).toBe(at + 1);
    replaceSet(...both);
    configureAudience(`${audience}-valid`);
    proxy.command.process.kill("SIGHUP");
    await expect.poll(() => countOf(proxy.command.stdout(), "configuration reloaded")).toBe(at + 1);
  }
});
