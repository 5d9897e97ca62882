import { writeFileSync } from "node:fs";
import type { ConnectRouter } from "@connectrpc/connect";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import {
  createTestGateway,
  GreenhouseService,
  type ProxyProcess,
  runProxyCommand,
  startProxyProcess,
} from "@protoport/testing/proxy";
import { createReflectionService, ServerReflection } from "../../../../../gateway/src/reflection/index.ts";
import { createSigningKey, createTempFolder, startIdentityProvider, testAudience } from "@protoport/testing/process";

// What each setting in the file does.

const folder = createTempFolder();
const requests: Headers[] = [];
const upstream = createTestGateway({
  routes: (router: ConnectRouter) => {
    router.service(GreenhouseService, {
      getReading: ({ sensor }, { requestHeader, responseHeader }) => {
        requests.push(requestHeader);
        responseHeader.set("x-internal", "1");
        responseHeader.set("x-version", "2");
        return { sensor, degreesCelsius: 21 };
      },
    });
    router.service(ServerReflection, createReflectionService([GreenhouseService, ServerReflection]));
  },
});
let address = "";
beforeAll(async () => {
  address = `http://127.0.0.1:${(await upstream.listen({ host: "127.0.0.1" })).port}`;
});
afterAll(async () => {
  await upstream.close();
  folder[Symbol.dispose]();
});

/** Writes a file with an upstream, other upstream settings, and other settings. */
function configure(name: string, ofUpstream: string, others: string): string {
  const text = `listen: { port: 0 }
admin: { port: 0 }
drain: { delayMs: 0 }
upstreams:
- addresses: [${address}]
  descriptors: reflection
${ofUpstream}
${others}
`;
  writeFileSync(folder.file(name), text);
  return folder.file(name);
}

function start(
  name: string,
  ofUpstream: string,
  others: string,
  environment?: Readonly<Record<string, string>>,
): Promise<ProxyProcess> {
  return startProxyProcess(["--config", configure(name, ofUpstream, others)], environment);
}

async function get(url: string, headers: Readonly<Record<string, string>> = {}): Promise<Response> {
  const response = await fetch(url, { headers });
  await response.clone().text();
  return response;
}

const token = "a-token-of-a-shop-2026";

const check = (file: string, ...more: readonly string[]) => runProxyCommand("--config", file, "--check", ...more);

test("header rules, credentials, rate limits, CORS and access log take effect", async () => {
  writeFileSync(folder.file("token"), `${token}\n`);
  await using proxy = await start(
    "all.yaml",
    `  requestHeader: { deny: [x-secret], rename: { x-old: x-new }, set: { x-gateway: public } }
  responseHeader: { deny: [x-internal] }`,
    `authentication: { realm: shop, tokens: [{ file: ${folder.file("token")} }], forward: false }
rateLimit: { perPrincipal: 2 }
cors: { origins: [https://shop.example], exposedHeaders: [x-version] }
accessLog: all
docs: false`,
  );
  const url = `${proxy.baseUrl}/sensors/4/reading`;
  const refused = await get(`${url}?key=hunter2`);
  expect([refused.status, refused.headers.get("www-authenticate")]).toEqual([401, 'Bearer realm="shop"']);
  const fields = { authorization: `Bearer ${token}`, "x-secret": "1", "x-old": "2", origin: "https://shop.example" };
  const response = await get(url, fields);
  expect([response.status, response.headers.get("x-internal"), response.headers.get("x-version")]).toEqual([
    200,
    null,
    "2",
  ]);
  expect(response.headers.get("access-control-expose-headers")).toContain("x-version");
  const sent = Object.fromEntries(requests.at(-1) ?? []);
  expect(sent).toMatchObject({ "x-new": "2", "x-gateway": "public" });
  expect(["authorization", "x-secret", "x-old"].filter((name) => name in sent)).toEqual([]);
  const statuses = [];
  for (let call = 0; call < 4; call++) statuses.push((await get(url, fields)).status);
  expect(statuses).toContain(429);
  expect((await get(`${proxy.baseUrl}/openapi.json`, fields)).status).not.toBe(200);
  const logged = (): readonly Record<string, unknown>[] =>
    proxy.command
      .stdout()
      .split("\n")
      .filter((line) => line.startsWith("{"))
      .map((line) => JSON.parse(line));
  await expect.poll(() => logged().length).toBeGreaterThan(5);
  expect(logged()[0]).toMatchObject({ path: "/sensors/4/reading", httpStatus: 401, code: "Unauthenticated" });
  expect(logged()[0]).toMatchObject({ refusal: "missing", reason: "the request has no bearer token" });
  expect(logged()[1]).toMatchObject({
    procedure: "/greenhouse.v1.GreenhouseService/GetReading",
    code: "OK",
    caller: "token-1",
  });
  expect(proxy.command.stdout() + proxy.command.stderr()).not.toMatch(/hunter2|a-token-of/);
});

test("an issuer's JWTs are accepted, and open RPCs need no token", async () => {
  using issuer = await startIdentityProvider(await createSigningKey("RS256", "1"));
  await using proxy = await start(
    "jwt.yaml",
    "",
    `authentication: { jwt: [{ issuer: ${issuer.issuer}, audiences: [${testAudience}] }], open: [/greenhouse.v1.GreenhouseService/WaterBed] }
rateLimit: { perAddress: 0.001 }
trustedProxies: [127.0.0.1]`,
  );
  const call = async (path: string, client: string, bearer: string, method: string = "GET"): Promise<number> => {
    const headers = { authorization: `Bearer ${bearer}`, "x-forwarded-for": client };
    const response = await fetch(`${proxy.baseUrl}${path}`, { method, headers });
    await response.text();
    return response.status;
  };
  const signed = await issuer.sign();
  expect(await call("/sensors/4/reading", "192.0.2.1", signed)).toBe(200);
  expect(requests.at(-1)?.get("authorization")).toBe(`Bearer ${signed}`);
  expect(requests.at(-1)?.get("x-forwarded-for")).toBe("192.0.2.1");
  expect(await call("/sensors/4/reading", "192.0.2.1", signed)).toBe(429);
  expect(await call("/sensors/4/reading", "192.0.2.2", await issuer.sign({ aud: "other" }))).toBe(401);
  expect(await call("/beds/1:water", "192.0.2.3", "none", "POST")).toBe(501);
});

test("rest.services sets the profile and options of single services", async () => {
  await using proxy = await start(
    "services.yaml",
    "",
    "requestBytes: 1024\nrest: { services: [{ name: greenhouse.*, profile: google, options: [lenient] }] }",
  );
  const headers = { "content-type": "application/json" };
  const body = JSON.stringify({ unknown: "x".repeat(1024) });
  const refused = await fetch(`${proxy.baseUrl}/beds/7:water`, { method: "POST", headers, body });
  expect(await refused.text()).toContain("; to accept it, set the server option requestBytes");
  expect((await get(`${proxy.baseUrl}/sensors/4/reading?unknown=1`)).status).toBe(200);
});

test.each([
  ["in production, only the access log names the limit that a request exceeds", { NODE_ENV: "production" }, false],
  ["outside production, the response also names the limit that a request exceeds", {}, true],
])("%s", async (_name, environment, isNamed) => {
  await using proxy = await start("named.yaml", "", "accessLog: errors\nrequestBytes: 1024", environment);
  const headers = { "content-type": "application/json" };
  const body = JSON.stringify({ note: "x".repeat(1024) });
  const refused = await fetch(`${proxy.baseUrl}/beds/7:water`, { method: "POST", headers, body });
  expect((await refused.text()).includes("requestBytes")).toBe(isNamed);
  await proxy.command.find(/"errorCode":"ERR_BODY_TOO_LARGE","setting":"requestBytes"/);
});

test("--check warns about an empty tokenHashesFile, and exits with 0", async () => {
  const tokenHashesFile = folder.file("hashes");
  writeFileSync(tokenHashesFile, "");
  const file = configure("hashes.yaml", "", `authentication: { tokenHashesFile: ${tokenHashesFile} }`);
  const { exitCode, errors } = await check(file);
  expect({ exitCode, errors }).toEqual({ exitCode: 0, errors: expect.stringContaining(tokenHashesFile) });
});

describe("the configuration file", () => {
  writeFileSync(folder.file("one"), `${token}\n`);
  writeFileSync(folder.file("two"), `${token}-second,${token}-third\n`);

  test.each(
    // oxfmt-ignore
    [
      ["authentication: { realm: a }", ":8:17: authentication requires tokens, tokenHashesFile, jwt"],
      ["authentication: { tokens: [{ env: PATH }] }", ":8:27: authentication.tokens are not valid: token 1"],
      [`authentication: { tokens: [{ file: ${folder.file("one")} }, { file: ${folder.file("two")} }] }`,
        ":8:27: authentication.tokens are not valid: token 2 contains a character that a bearer token cannot"],
      ["  requestHeader: { allow: ['*', cookie] }",
        ':8:33: upstreams[0].requestHeader.allow[1] must match a field that can be forwarded, got "cookie"'],
      ["  responseHeader: { rename: { Link: x-link } }",
        ':8:37: upstreams[0].responseHeader.rename.Link has no effect unless allow contains the exact name, got "Link"'],
      ["trustedProxies: [10.0.0.0/8, proxy.example]",
        ":8:30: trustedProxies[1] must be an IP address or a network such as 10.0.0.0/8, got"],
    ],
  )("the invalid setting `$0` is reported with its line by --check", async (others, problem) => {
    const file = configure("wrong.yaml", "", others);
    const { exitCode, printed, errors } = await check(file);
    expect({ exitCode, printed }).toEqual({ exitCode: 2, printed: "" });
    expect(errors).toContain(`${file}${problem}`);
  });

  test("an invalid HTTP rule stops the start, even with wait: true", async () => {
    const rules = folder.file("rules.yaml");
    writeFileSync(rules, `rules:\n- selector: ${GreenhouseService.typeName}.GetReading\n  get: /{nope}\n`);
    const file = configure("wait.yaml", "", `wait: true\nrest: { rules: [${rules}] }`);
    const { exitCode, errors } = await runProxyCommand("--config", file);
    expect(exitCode).toBe(1);
    expect(errors).toContain("cannot start the proxy: invalid HTTP rules:");
  });

  test("--check --json prints services and routes", async () => {
    // Unlike validate, this accepts descriptors from reflection.
    const { exitCode, printed } = await check(configure("json.yaml", "", "validateReflected: true"), "--json");
    expect([exitCode, JSON.parse(printed)]).toMatchObject([0, { services: ["greenhouse.v1.GreenhouseService"] }]);
  });

  test("--check prints methodConfig timeouts", async () => {
    const methods = `methodConfig: [{ name: [{ method: GetReading, service: ${GreenhouseService.typeName} }], timeout: 0.3s }]`;
    const { printed } = await check(configure("timeouts.yaml", "", methods));
    expect(printed.split("\n").slice(-2)).toEqual([
      "Timeouts of unary calls without a deadline: REST 15000 ms, others none.",
      `  ${GreenhouseService.typeName}.GetReading: 300 ms`,
    ]);
  });

  test.each([
    { open: `/${GreenhouseService.typeName}/GetReading`, listed: `${GreenhouseService.typeName}.GetReading` },
    { open: "other.v1.Service", listed: "none" },
  ])("--check lists $listed as RPCs without a credential", async ({ open, listed }) => {
    writeFileSync(folder.file("check-token"), token);
    const settings = `mcp: { tools: [${GreenhouseService.typeName}.Water*] }
authentication: { tokens: [{ file: ${folder.file("check-token")} }], open: [${open}] }
`;
    const { printed } = await check(configure("tools.yaml", "", settings));
    expect(printed).toContain(
      `Tools over MCP:\n  ${GreenhouseService.typeName}.WaterBed\n\nRPCs without a credential:\n  ${listed}\n\nTimeouts`,
    );
  });

  test("the schema command prints the file's JSON Schema", async () => {
    const { exitCode, printed } = await runProxyCommand("schema");
    expect([exitCode, JSON.parse(printed)]).toMatchObject([0, { properties: { upstreams: { type: "array" } } }]);
  });
});
