import { readFileSync, writeFileSync } from "node:fs";
import type { ConnectRouter } from "@connectrpc/connect";
import { afterAll, beforeAll, expect, test } from "vitest";
import { GreenhouseService } from "../../../../../examples/gen/greenhouse/v1/greenhouse_pb.ts";
import { createReflectionService, ServerReflection } from "../../../../../gateway/src/reflection/index.ts";
import { createSigningKey, createTempFolder, startIdentityProvider, testAudience } from "@protoport/testing/process";
import { createTestGateway, OrderService, type ProxyProcess, startProxyProcess } from "@protoport/testing/proxy";
import { readSamples } from "../../../../../testing/src/telemetry/samples.ts";

// SIGHUP makes a running proxy read its configuration file again.

const folder = createTempFolder();
const file = folder.file("proxy.yaml");

/** Returns an upstream whose readings have this temperature. */
function createGreenhouse(degreesCelsius: number) {
  return createTestGateway({
    routes: (router: ConnectRouter) => {
      router.service(GreenhouseService, { getReading: ({ sensor }) => ({ sensor, degreesCelsius }) });
      router.service(ServerReflection, createReflectionService([GreenhouseService, ServerReflection]));
    },
  });
}

const [warm, cold] = [createGreenhouse(30), createGreenhouse(3)];
let addresses: readonly string[] = [];
beforeAll(async () => {
  const bound = await Promise.all([warm, cold].map((gateway) => gateway.listen({ host: "127.0.0.1" })));
  addresses = bound.map(({ port }) => `http://127.0.0.1:${port}`);
});
afterAll(async () => {
  await Promise.all([warm.close(), cold.close()]);
  folder[Symbol.dispose]();
});

function configure(address: string | undefined, others: string): void {
  const common = "listen: { port: 0 }\nadmin: { port: 0 }\ndrain: { delayMs: 0 }\n";
  writeFileSync(file, `${common}upstreams: [{ addresses: ["${address}"], descriptors: reflection }]\n${others}`);
}

async function read(proxy: ProxyProcess, sensor: number): Promise<[number, string]> {
  const response = await fetch(`${proxy.baseUrl}/sensors/${sensor}/reading`);
  return [response.status, await response.text()];
}

async function metric({ adminUrl }: ProxyProcess, name: string): Promise<readonly number[]> {
  const samples = readSamples(await (await fetch(`${adminUrl}/metrics`)).text());
  return samples.filter((sample) => sample.name === name).map(({ value }) => value);
}

test("an unreachable upstream keeps its descriptors when the configuration is reloaded", async () => {
  const orders = createTestGateway({
    routes: (router: ConnectRouter) => {
      router.service(OrderService, {});
      router.service(ServerReflection, createReflectionService([OrderService, ServerReflection]));
    },
  });
  const { port } = await orders.listen({ host: "127.0.0.1" });
  const address = `http://127.0.0.1:${port}`;
  const others = `- { addresses: ["${address}"], descriptors: reflection, services: [orders.*], connections: `;
  const configureBoth = (connections: number, more: string): void => {
    configure(addresses[0], "");
    const first = readFileSync(file, "utf8")
      .replace("upstreams: [{", "upstreams:\n- { services: [greenhouse.*],")
      .replace("}]", "}");
    writeFileSync(file, `${first}${others}${connections} }\n${more}`);
  };
  configureBoth(1, "");
  await using proxy = await startProxyProcess(["--config", file]);
  await orders.close();
  configureBoth(2, "docs: false\n");
  proxy.command.process.kill("SIGHUP");
  await expect.poll(proxy.command.stdout).toContain("configuration reloaded");
  expect(proxy.command.stderr()).toContain(`serving ${address} by its previous descriptors: `);
  expect(await read(proxy, 1)).toEqual([200, '{"sensor":"1","degreesCelsius":30}']);
  expect((await fetch(`${proxy.baseUrl}/openapi.json`)).status).toBe(404);
  const call = { method: "POST", headers: { "content-type": "application/json" }, body: "{}" };
  const [method] = OrderService.methods;
  expect((await fetch(`${proxy.baseUrl}/${OrderService.typeName}/${method?.name}`, call)).status).toBe(503);
  expect(await metric(proxy, "gateway_descriptors_reload_successful")).toEqual([1, 0]);
});

test("a reload keeps authentication and rate limits while the issuer is unreachable", async () => {
  using issuer = await startIdentityProvider(await createSigningKey("RS256", "1"));
  const admission = `authentication: { jwt: [{ issuer: ${issuer.issuer}, audiences: [${testAudience}] }] }
rateLimit: { perPrincipal: 0.01 }
`;
  configure(addresses[0], admission);
  await using proxy = await startProxyProcess(["--config", file]);
  const [ada, ben] = [await issuer.sign({ sub: "ada" }), await issuer.sign({ sub: "ben" })];
  const call = async (token: string): Promise<number> => {
    const response = await fetch(`${proxy.baseUrl}/sensors/1/reading`, {
      headers: { authorization: `Bearer ${token}` },
    });
    await response.text();
    return response.status;
  };
  expect(await call(ada)).toBe(200);
  issuer.stop();
  configure(addresses[0], `${admission}docs: false\n`);
  proxy.command.process.kill("SIGHUP");
  await expect.poll(proxy.command.stdout).toContain("configuration reloaded");
  // The keys are read again, as on every reload.
  await expect.poll(proxy.command.stderr).toContain("cannot fetch keys");
  expect([await call(ada), await call(ben)]).toEqual([429, 200]);
});
