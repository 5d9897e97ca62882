import { afterAll, describe, expect, test } from "vitest";
import { GreenhouseService, runProxyCommand, startProxyProcess } from "@protoport/testing/proxy";
import { startReflectedGreenhouse } from "../../../support/greenhouses.ts";
import { createTempFolder, shared } from "@protoport/testing";

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
