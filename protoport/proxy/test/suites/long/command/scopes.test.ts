import { afterAll, beforeEach, describe, expect, test } from "vitest";
import { exchangeHttp1, type Field, fieldValue, type HttpRequest } from "@protoport/testing/http";
// oxfmt-ignore
import { getReadingProcedure as read, type ProxyProcess, startProxyProcess, waterBedProcedure as water
} from "@protoport/testing/proxy";
import { startIdentityProvider, statelessRequest, toolNameOf, createTempFolder, shared } from "@protoport/testing";
import { startReflectedGreenhouse } from "../../../support/greenhouses.ts";
import { createSigningKey, testAudience } from "@protoport/testing/process";

const watch = "/greenhouse.v1.GreenhouseService/WatchReadings";
const publicUrl = "https://api.example/shop";
const folder = createTempFolder();
const calls: string[] = [];
const upstream = shared(() =>
  startReflectedGreenhouse({
    getReading: () => (calls.push("GetReading"), {}),
    waterBed: () => (calls.push("WaterBed"), {}),
    async *watchReadings() {
      calls.push("WatchReadings");
      yield {};
    },
  }),
);
const issuer = shared(async () => startIdentityProvider(await createSigningKey("RS256", "1")));
afterAll(() => folder[Symbol.dispose]());
beforeEach(() => void (calls.length = 0));

function configure(authentication: string, others: string = ""): string {
  const text = `listen: { port: 0 }
admin: { port: 0 }
drain: { delayMs: 0 }
upstreams:
- { addresses: [${upstream.baseUrl}], descriptors: reflection }
authentication:
  jwt: [{ issuer: ${issuer.issuer}, audiences: [${testAudience}] }]
${authentication}
${others}
`;
  return folder.write("proxy.yaml", text);
}

async function ask(proxy: ProxyProcess, request: HttpRequest, token?: string) {
  const credential: readonly Field[] = token === undefined ? [] : [["authorization", `Bearer ${token}`]];
  const { hostname, port } = new URL(proxy.baseUrl);
  const all = { ...request, header: [...request.header, ...credential] };
  const { httpStatus, header, body } = await exchangeHttp1({ address: hostname, port: Number(port) }, all);
  return { httpStatus, challenge: fieldValue(header, "www-authenticate") ?? null, body: String(body) };
}

const waterBed = { httpMethod: "POST", path: "/beds/7:water", header: [] };
const callTool = (procedure: string): HttpRequest =>
  statelessRequest("tools/call", { name: toolNameOf(procedure), arguments: {} });
const scopes = `  publicUrl: ${publicUrl}/
  scopes: { greenhouse.v1.*: beds:read, greenhouse.v1.GreenhouseService.WaterBed: beds:water }`;

describe("a proxy with publicUrl and scopes", () => {
  const proxy = shared(() => startProxyProcess(["--config", configure(scopes, "mcp: { tools: [greenhouse.v1.*] }")]));

  test.each([
    { path: "", resource: publicUrl },
    { path: "/mcp", resource: `${publicUrl}/mcp` },
  ])("publishes metadata for $resource without a credential", async ({ path, resource }) => {
    const url = `/.well-known/oauth-protected-resource/shop${path}`;
    const document = await ask(proxy, { httpMethod: "GET", path: url, header: [] });
    expect(document.httpStatus).toBe(200);
    const issuers = { authorization_servers: [issuer.issuer], scopes_supported: ["beds:read", "beds:water"] };
    const methods = { bearer_methods_supported: ["header"], resource_name: "proxy" };
    expect(JSON.parse(document.body)).toEqual({ resource, ...issuers, ...methods });
  });

  test("a call is forwarded only with the required scope", async () => {
    const refused = await ask(proxy, waterBed, await issuer.sign({ scope: "beds:read" }));
    expect(refused.httpStatus).toBe(403);
    expect(refused.challenge).toMatch(/error="insufficient_scope".*scope="beds:water"/);
    expect(calls).toEqual([]);
    expect((await ask(proxy, waterBed, await issuer.sign({ scope: "beds:water" }))).httpStatus).toBe(200);
    expect(calls).toEqual(["WaterBed"]);
  });

  test("lists the tools that each caller's token may call", async () => {
    const listed = async (scope?: string): Promise<readonly string[]> => {
      const { body } = await ask(proxy, statelessRequest("tools/list"), await issuer.sign({ scope }));
      expect(JSON.parse(body).result.cacheScope).toBe("private");
      return JSON.parse(body).result.tools.map(({ name }: { name: string }) => name);
    };
    expect(await listed("beds:water")).toEqual([toolNameOf(water)]);
    expect([await listed("beds:read"), await listed()]).toEqual([[read, watch].map(toolNameOf), []]);
  });
});

test("a proxy without scopes accepts tokens without scopes, and publishes no metadata", async () => {
  await using proxy = await startProxyProcess(["--config", configure("", "mcp: { tools: [greenhouse.v1.*] }")]);
  const path = "/.well-known/oauth-protected-resource/mcp";
  const { httpStatus, challenge } = await ask(proxy, { httpMethod: "GET", path, header: [] });
  expect([httpStatus, challenge]).toEqual([401, 'Bearer realm="proxy"']);
  expect(await ask(proxy, callTool(water), await issuer.sign())).toMatchObject({ httpStatus: 200 });
  expect(calls).toEqual(["WaterBed"]);
});

test("a reload applies new scopes, and reports names that match no RPC", async () => {
  await using proxy = await startProxyProcess(["--config", configure("  scopes: { greenhouse.v1.*: a }")]);
  const token = await issuer.sign({ scope: "b" });
  expect((await ask(proxy, waterBed, token)).httpStatus).toBe(403);
  configure(`  publicUrl: ${publicUrl}\n  scopes: { greenhouse.v1.*: b, greenhouse.v1.Greenhouse.*: c }`);
  proxy.command.process.kill("SIGHUP");
  await expect.poll(proxy.command.stdout).toContain("configuration reloaded");
  expect((await ask(proxy, waterBed, token)).httpStatus).toBe(200);
  const challengeTo = async (path: string): Promise<string | null> =>
    (await ask(proxy, { httpMethod: "POST", path, header: [] })).challenge;
  expect(await challengeTo("/mcp")).toMatch(/oauth-protected-resource\/shop"$/);
  await expect
    .poll(proxy.command.stderr)
    .toContain("authentication.scopes.greenhouse.v1.Greenhouse.* has no effect: no served RPC matches this name");
  expect(proxy.command.stderr()).not.toContain("greenhouse.v1.* has no effect");
  // Only the tools are new, and their document is published too.
  configure(`  publicUrl: ${publicUrl}\n  scopes: { greenhouse.v1.*: b }`, "mcp: { tools: [greenhouse.v1.*] }");
  proxy.command.process.kill("SIGHUP");
  await expect.poll(() => challengeTo("/mcp")).toMatch(/oauth-protected-resource\/shop\/mcp"$/);
});
