import { afterAll, describe, expect, test } from "vitest";
// oxfmt-ignore
import { GreenhouseService, runProxyCommand, startProxyProcess, KitchenSink, startProxy, type TestProxy
} from "@protoport/testing/proxy";
import { startReflectedGreenhouse } from "../../../support/greenhouses.ts";
import { createTempFolder, shared, exchangeHttp1, type Field, startKitchenSink } from "@protoport/testing";
import { toProxySettings } from "../../../../src/command/proxy-settings.ts";
import { shownNames } from "../../../../src/command/access-log.ts";
import { readProxyConfiguration } from "../../../../src/settings/index.ts";
import { costRatio } from "../../../../../testing/src/cost-ratio.ts";

const folder = createTempFolder();
const upstream = shared(() =>
  startReflectedGreenhouse({ getReading: ({ sensor }) => ({ sensor, degreesCelsius: 21 }) }),
);
afterAll(() => folder[Symbol.dispose]());

function configure(name: string, others: string): string {
  const text = `listen: { port: 0 }
admin: { port: 0 }
drain: { delayMs: 0 }
upstreams:
- addresses: [${upstream.baseUrl}]
  descriptors: reflection
${others}
`;
  return folder.write(name, text);
}

const token = "a-token-of-a-shop-2026";
const check = (file: string, ...more: readonly string[]) => runProxyCommand("--config", file, "--check", ...more);

test("the access log lists refusals and callers, without query and token", async () => {
  const tokens = `[{ file: ${folder.write("token", `${token}\n`)} }]`;
  const settings = `authentication: { realm: shop, tokens: ${tokens} }\naccessLog: all`;
  await using proxy = await startProxyProcess(["--config", configure("all.yaml", settings)]);
  const url = `${proxy.baseUrl}/sensors/4/reading`;
  await (await fetch(`${url}?key=hunter2`)).text();
  await (await fetch(url, { headers: { authorization: `Bearer ${token}` } })).text();
  const logged = (): readonly Record<string, unknown>[] => {
    const lines = proxy.command.stdout().split("\n");
    return lines.filter((line) => line.startsWith("{")).map((line) => JSON.parse(line));
  };
  await expect.poll(() => logged().length).toBe(2);
  const refused = { code: "Unauthenticated", refusal: "missing", reason: "the request has no bearer token" };
  expect(logged()).toMatchObject([
    { path: "/sensors/4/reading", httpStatus: 401, ...refused },
    { procedure: "/greenhouse.v1.GreenhouseService/GetReading", code: "OK", caller: "token-1" },
  ]);
  expect(proxy.command.stdout() + proxy.command.stderr()).not.toMatch(/hunter2|a-token-of/);
});

test.each([
  ["in production, only the access log names the limit that a request exceeds", { NODE_ENV: "production" }, false],
  ["outside production, the response also names the limit that a request exceeds", {}, true],
])("%s", async (_name, environment, isNamed) => {
  const file = configure("named.yaml", "accessLog: errors\nrequestBytes: 1024");
  await using proxy = await startProxyProcess(["--config", file], environment);
  const headers = { "content-type": "application/json" };
  const body = JSON.stringify({ note: "x".repeat(1024) });
  const refused = await fetch(`${proxy.baseUrl}/beds/7:water`, { method: "POST", headers, body });
  expect((await refused.text()).includes("requestBytes")).toBe(isNamed);
  await proxy.command.find(/"errorCode":"ERR_BODY_TOO_LARGE","setting":"requestBytes"/);
});

test("--check warns about an empty tokenHashesFile, and exits with 0", async () => {
  const tokenHashesFile = folder.write("hashes", "");
  const file = configure("hashes.yaml", `authentication: { tokenHashesFile: ${tokenHashesFile} }`);
  const { exitCode, errors } = await check(file);
  expect({ exitCode, errors }).toEqual({ exitCode: 0, errors: expect.stringContaining(tokenHashesFile) });
});

describe("the configuration file", () => {
  const one = folder.write("one", `${token}\n`);
  const two = folder.write("two", `${token}-second,${token}-third\n`);

  test.each(
    // oxfmt-ignore
    [
      ["authentication: { realm: a }", ":7:17: authentication requires tokens, tokenHashesFile, jwt"],
      ["authentication: { tokens: [{ env: PATH }] }", ":7:27: authentication.tokens are not valid: token 1"],
      [`authentication: { tokens: [{ file: ${one} }, { file: ${two} }] }`,
        ":7:27: authentication.tokens are not valid: token 2 contains a character that a bearer token cannot"],
      ["  requestHeader: { allow: ['*', cookie] }",
        ':7:33: upstreams[0].requestHeader.allow[1] must match a field that can be forwarded, got "cookie"'],
      ["  responseHeader: { rename: { Link: x-link } }",
        ':7:37: upstreams[0].responseHeader.rename.Link has no effect unless allow contains the exact name, got "Link"'],
      ["trustedProxies: [10.0.0.0/8, proxy.example]",
        ":7:30: trustedProxies[1] must be an IP address or a network such as 10.0.0.0/8, got"],
    ],
  )("the invalid setting `$0` is reported with its line by --check", async (others, problem) => {
    const file = configure("wrong.yaml", others);
    const { exitCode, printed, errors } = await check(file);
    expect({ exitCode, printed }).toEqual({ exitCode: 2, printed: "" });
    expect(errors).toContain(`${file}${problem}`);
  });

  test("--check --json prints services and routes", async () => {
    // Unlike validate, this accepts descriptors from reflection.
    const { exitCode, printed } = await check(configure("json.yaml", "validateReflected: true"), "--json");
    expect([exitCode, JSON.parse(printed)]).toMatchObject([0, { services: ["greenhouse.v1.GreenhouseService"] }]);
  });

  test("--check prints methodConfig timeouts", async () => {
    const methods = `methodConfig: [{ name: [{ method: GetReading, service: ${GreenhouseService.typeName} }], timeout: 0.3s }]`;
    const { printed } = await check(configure("timeouts.yaml", methods));
    expect(printed.split("\n").slice(-2)).toEqual([
      "Timeouts of unary calls without a deadline: REST 15000 ms, others none.",
      `  ${GreenhouseService.typeName}.GetReading: 300 ms`,
    ]);
  });

  test.each([
    { open: `/${GreenhouseService.typeName}/GetReading`, listed: `${GreenhouseService.typeName}.GetReading` },
    { open: "other.v1.Service", listed: "none" },
  ])("--check lists $listed as RPCs without a credential", async ({ open, listed }) => {
    const settings = `mcp: { tools: [${GreenhouseService.typeName}.Water*] }
authentication: { tokens: [{ file: ${folder.write("check-token", token)} }], open: [${open}] }
`;
    const { printed } = await check(configure("tools.yaml", settings));
    expect(printed).toContain(
      `Tools over MCP:\n  ${GreenhouseService.typeName}.WaterBed\n\nRPCs without a credential:\n  ${listed}\n\nTimeouts`,
    );
  });

  test("the schema command prints the file's JSON Schema", async () => {
    const { exitCode, printed } = await runProxyCommand("schema");
    expect([exitCode, JSON.parse(printed)]).toMatchObject([0, { properties: { upstreams: { type: "array" } } }]);
  });
});

interface Refusal {
  readonly request: string;
  readonly body?: string;
  readonly header?: readonly Field[];
  /** The setting that the message names, or `undefined` for none. */
  readonly named: string | undefined;
}

const sinks = "POST /v1/sinks";
const unary = "POST /kitchensink.v1.KitchenSink/Create";

const refusals: readonly Refusal[] = [
  { request: "GET /v1/query?x=1", named: "rest.options: [lenient]" },
  { request: "DELETE /v1/sinks/7?f_int64=7", named: "rest.options: [lenient]" },
  { request: "GET /v1/query?labels[a]=b", named: "rest.options: [mapsInQuery]" },
  { request: "DELETE /v1/sinks/7", body: "{}", named: "rest.options: [ignoreBodies]" },
  { request: "PUT /v1/sinks/7", body: '{"fInt64":"7"}', named: "rest.options: [sameValueAsPath] or [lenient]" },
  { request: sinks, body: JSON.stringify({ fString: "a".repeat(1e6) }), named: "requestBytes" },
  { request: "GET /v1/query", header: [["x-large", "x".repeat(9_000)]], named: "headerBytes" },
  { request: `GET /v1/query?f_string=${"x".repeat(70_000)}`, named: undefined },
  { request: sinks, body: "{}", header: [["content-encoding", "x"]], named: undefined },
  { request: unary, body: '{"any":{"@type":"type.googleapis.com/a.B"}}', named: undefined },
];

const small = "requestBytes: 1000000\nheaderBytes: 8192";
const large = "requestBytes: 2000000\nheaderBytes: 65536\n";
const all = `${large}rest: { options: [lenient, mapsInQuery, ignoreBodies, sameValueAsPath] }`;

test("the error for a refused request names only settings of the command", async () => {
  await using sinkServer = await startKitchenSink();
  const baseUrl = `http://${sinkServer.address.address}:${sinkServer.address.port}`;
  const startWith = async (set: string): Promise<TestProxy> => {
    const text = `upstreams: [{ addresses: ["${baseUrl}"], descriptors: reflection }]\n${set}`;
    const { rest, ...settings } = await toProxySettings(readProxyConfiguration({ name: "proxy.yaml", text }, {}));
    const [readMaxBytes, limits] = [settings.requestBytes, { headerBytes: settings.headerBytes }];
    return startProxy(baseUrl, [KitchenSink.file], { nameOptions: shownNames, rest, readMaxBytes, limits });
  };
  await using refusing = await startWith(small);
  await using accepting = await startWith(all);
  for (const { request, body, header = [], named } of refusals) {
    const [httpMethod = "", path = ""] = request.split(" ");
    const content = body === undefined ? [] : [["content-type", "application/json"] as const];
    const parts = { header: [...content, ...header], ...(body !== undefined && { body: Buffer.from(body) }) };
    const sent = { httpMethod, path, ...parts };
    const refused = await exchangeHttp1(refusing.address, sent);
    const [, name] = /; to accept it, set the server option (.*?)"/.exec(refused.body.toString()) ?? [];
    expect([refused.httpStatus >= 400, name]).toEqual([true, named]);
    if (named !== undefined) expect((await exchangeHttp1(accepting.address, sent)).httpStatus).toBe(200);
  }
});

function readUnknown(count: number): () => void {
  const keys = Array.from({ length: count }, (_, at) => `unknown${at}: 1\n`).join("");
  const text = `upstreams:\n- addresses: [http://127.0.0.1:1]\n  descriptors: reflection\n${keys}`;
  return () => expect(() => readProxyConfiguration({ name: "a.yaml", text }, {})).toThrow("unknown0 is not a setting");
}

test("reading proxy.yaml takes linear time with many unknown settings", async () => {
  // 4 for a linear reader, and 16 for one that compares each key with all others.
  expect(await costRatio(readUnknown(20_000), readUnknown(5_000), 3)).toBeLessThan(8);
});
