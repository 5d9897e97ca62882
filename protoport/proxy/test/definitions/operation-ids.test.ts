import { afterAll, expect, test } from "vitest";
// oxfmt-ignore
import { descriptorSetOf, ProxyCommand, type RouteTexts, runProxyCommand, serviceWithRoutes
} from "@protoport/testing/proxy";
import { createTempFolder } from "@protoport/testing/process";
import { checkDefinition, compareDefinitions, type Definition, parseDefinition } from "../../src/definitions/entry.ts";

const folder = createTempFolder();
afterAll(() => folder[Symbol.dispose]());
const setOf = (services: Readonly<Record<string, RouteTexts>>): Uint8Array =>
  descriptorSetOf(...Object.entries(services).map(([name, routes]) => serviceWithRoutes(name, routes).file));
const definitionOf = (typeName: string, routes: RouteTexts): Definition =>
  parseDefinition("the set", setOf({ [typeName]: routes }));
const orders = { "orders.v1.Admin": { Get: ["GET /orders"] } };
const clashing = setOf({ ...orders, "stock.v1.Admin": { Get: ["GET /stock"] } });
const clash = "the operation id v1_Admin_get names orders.v1.Admin.Get and stock.v1.Admin.Get; set operationIds: full";

test("checkDefinition reports equal operation ids unless operationIds is full", async () => {
  const definition = parseDefinition("the set", clashing);
  expect((await checkDefinition(definition)).problems).toEqual([clash]);
  expect((await checkDefinition(definition, { operationIds: "full" })).problems).toEqual([]);
});

test("the openapi command refuses equal operation ids unless --operation-ids is full", async () => {
  const set = folder.write("clashing.binpb", clashing);
  const errors = `cannot describe the definition: ${clash}`;
  expect(await runProxyCommand("openapi", set)).toMatchObject({ exitCode: 1, errors });
  const { exitCode, printed } = await runProxyCommand("openapi", set, "--operation-ids", "full");
  expect([exitCode, printed]).toEqual([0, expect.stringContaining('"operationId":"stock_v1_Admin_get"')]);
});

test.each<[name: string, old: RouteTexts, now: RouteTexts, want: readonly object[]]>(
  // oxfmt-ignore
  [
    ["another RPC with the route", { Get: ["GET /shop"] }, { Read: ["GET /shop"] },
      [{ rule: "operation-id-changed", severity: "warning", subject: "shop.v1.Shop.Get GET /shop",
        change: "the operation id in the OpenAPI document is v1_Shop_read",
        before: "generated clients called GET /shop by v1_Shop_get" }]],
    ["a further binding before the route", { Get: ["GET /shop"] }, { Get: ["GET /shops", "GET /shop"] }, [{ subject: "shop.v1.Shop.Get GET /shop", now: "clients generated again call it by v1_Shop_get_2" }]],
    ["a further binding after the route", { Get: ["GET /shop"] }, { Get: ["GET /shop", "GET /s"] }, []],
    ["a new RPC", { Get: ["GET /shop"] }, { Add: ["POST /shop"], Get: ["GET /shop"] }, []],
  ],
)("compareDefinitions reports the changed operation id of %s", async (_name, old, now, want) => {
  const [published, current] = [definitionOf("shop.v1.Shop", old), definitionOf("shop.v1.Shop", now)];
  const { open } = await compareDefinitions(published, current);
  expect(open).toEqual(want.map((each) => expect.objectContaining(each)));
});

function configure(descriptors: string, openapi: object): string {
  const upstreams = [{ addresses: ["http://127.0.0.1:1"], descriptors }];
  const settings = { listen: { port: 0 }, drain: { delayMs: 0, timeoutMs: 0 }, upstreams, openapi };
  return folder.write("proxy.yaml", JSON.stringify(settings));
}

test("a proxy refuses equal operation ids at start, unless operationIds is full", async () => {
  const descriptors = folder.write("served.binpb", clashing);
  const refused = new ProxyCommand(["--config", configure(descriptors, {})]);
  expect(await refused.done).toBe(2);
  expect(refused.errors.join("\n")).toContain(`openapi.operationIds is service, but ${clash}`);
  await using command = new ProxyCommand(["--config", configure(descriptors, { operationIds: "full" })]);
  const document = await (await fetch(`${await command.serving}/openapi.json`)).text();
  expect(document).toBe((await runProxyCommand("openapi", descriptors, "--operation-ids", "full")).printed);
  configure(descriptors, { operationIds: "rpc" });
  command.hangUp();
  expect(await command.waitForLine(/^cannot reload the configuration: .*operationIds is rpc/)).toBeDefined();
});

test("a proxy describes reloaded descriptors with equal operation ids by full ids, or without operations, and reports them", async () => {
  const descriptors = folder.write("reloaded.binpb", setOf(orders));
  const upstream = ["--upstream", "http://127.0.0.1:1", "--descriptors", descriptors];
  await using command = new ProxyCommand(["--port", "0", "--drain-delay-ms", "0", ...upstream]);
  const url = `${await command.serving}/openapi.json`;
  expect(await (await fetch(url)).text()).toContain('"operationId":"v1_Admin_get"');
  folder.write("reloaded.binpb", clashing);
  command.hangUp();
  expect(await command.waitForLine(/^descriptors reloaded/)).toBeDefined();
  const response = await fetch(url);
  const ids = /"operationId":"orders_v1_Admin_get".*"operationId":"stock_v1_Admin_get"/;
  expect([response.status, await response.text()]).toEqual([200, expect.stringMatching(ids)]);
  expect(command.errors).toContain(`the document at /openapi.json has operationIds: full, because ${clash}`);
  folder.write("reloaded.binpb", setOf({ "a.b_c.Admin": { Get: ["GET /a"] }, "a_b.c.Admin": { Get: ["GET /b"] } }));
  command.hangUp();
  await expect.poll(async () => (await fetch(url)).text()).toContain('"paths":{}');
  expect(command.errors.at(-1)).toContain("the document at /openapi.json has no operations, because the operation id");
});
