import type { DescService } from "@bufbuild/protobuf";
import { expect, onTestFinished, test } from "vitest";
import { createMcp } from "../../../../../gateway/src/mcp/index.ts";
import type { ProxiedUpstreamOptions, ProxyGateway, ProxyOptions } from "../../../../src/create-proxy.ts";
import { createProxy } from "../../../../src/create-proxy.ts";
import type { ReflectedUpstream } from "@protoport/testing/proxy";
import { descriptorSetOf, statelessRequest, serviceWithRoutes, startReflectedUpstream } from "@protoport/testing/proxy";

// An upstream offers another one's services and REST routes by reflection, but gets neither its calls nor its
// credentials.

const orders = serviceWithRoutes("shop.v1.Orders", {
  Get: ["GET /v1/orders/{id}"],
  Delete: ["DELETE /v1/orders/{id}", "POST /v1/orders/{id}:delete"],
});
const stock = serviceWithRoutes("stock.v1.Stock", { Count: ["GET /v1/stock/{id}"] });
/** The hostile upstream. Most routes would intercept the others' calls. */
const evil = serviceWithRoutes("evil.v1.Evil", {
  Steal: ["DELETE /v1/orders/7", "* /v1/orders/{id}:cancel", "GET /v1/evil/{id}"],
  Catch: ["GET /{id=**}"],
  Call: ["POST /shop.v1.Orders/Delete", "POST /shop.v1.Orders/Later", "POST /{id}/{sub}"],
  Head: ["HEAD /v1/stock/1"],
});
/** The hostile upstream's service while it claims no routes of others. */
const harmless = serviceWithRoutes("evil.v1.Evil", { Steal: ["GET /v1/evil/{id}"] });
/** Another upstream's services, which a hostile one claims by their names. */
const claimed = serviceWithRoutes("shop.v1.Orders", { Get: ["GET /v1/x"], Delete: ["DELETE /v1/x"], Later: [] });

const refusedRoute = ({ authority }: ReflectedUpstream, route: string, owner: string): string =>
  `${authority}: cannot use the descriptors: route ${route} belongs to ${owner}; add the RPC to rest.omit, or replace its rule in rest.rules`;

async function start(...services: readonly DescService[]): Promise<ReflectedUpstream> {
  const upstream = await startReflectedUpstream(...services);
  onTestFinished(() => upstream.stop());
  return upstream;
}

type Upstreams = readonly ProxiedUpstreamOptions[];

async function open(upstreams: Upstreams, options: Partial<ProxyOptions> = {}): Promise<ProxyGateway> {
  const proxy = await createProxy({ upstreams, ...options });
  onTestFinished(() => proxy.close());
  return proxy;
}

function reflected({ address }: ReflectedUpstream, services: string, more: object = {}): ProxiedUpstreamOptions {
  return { upstream: address, descriptors: "reflection", services: [services], ...more };
}

/** Sends a call with a credential. @param line - method and path; a POST has an empty JSON body */
async function send(proxy: ProxyGateway, line: string): Promise<number> {
  const [method = "", path = ""] = line.split(" ");
  // The `:delete` rule has no body.
  const hasBody = method === "POST" && !path.includes(":");
  const request = new Request(`http://localhost${path}`, {
    method,
    headers: { authorization: "t", ...(hasBody && { "content-type": "application/json" }) },
    ...(hasBody && { body: "{}" }),
  });
  return (await proxy.fetch(request)).status;
}

const restCalls = ["DELETE /v1/orders/7", "GET /v1/orders/7", "POST /v1/orders/7:delete"];
const ordersCalls = [...restCalls, "POST /shop.v1.Orders/Delete"];
const ordersReceived = ["Delete t", "Get t", "Delete t", "Delete t"];

async function sendAll(proxy: ProxyGateway, lines: readonly string[]): Promise<readonly number[]> {
  const statuses: number[] = [];
  for (const line of lines) statuses.push(await send(proxy, line));
  return statuses;
}

test("an upstream that claims routes of earlier ones keeps its last descriptors", async () => {
  const [a, b, c] = [await start(orders), await start(stock), await start(harmless)];
  const upstreams = [reflected(a, "shop.*"), reflected(b, "stock.*"), reflected(c, "evil.*")];
  const proxy = await open(upstreams);
  c.offer(evil, claimed);
  const problems = [
    refusedRoute(c, "DELETE /v1/orders/7 of evil.v1.Evil.Steal", a.authority),
    refusedRoute(c, "* /v1/orders/{id}:cancel of evil.v1.Evil.Steal", a.authority),
    refusedRoute(c, "GET /{id=**} of evil.v1.Evil.Catch", b.authority),
    refusedRoute(c, "POST /shop.v1.Orders/Delete of evil.v1.Evil.Call", a.authority),
    refusedRoute(c, "POST /shop.v1.Orders/Later of evil.v1.Evil.Call", a.authority),
    refusedRoute(c, "POST /{id}/{sub} of evil.v1.Evil.Call", a.authority),
    refusedRoute(c, "HEAD /v1/stock/1 of evil.v1.Evil.Head", b.authority),
  ];
  for (let reload = 0; reload < 3; reload++) {
    if (reload > 0) expect(await proxy.reload()).toMatchObject({ isChanged: false, problems });
    for (const upstream of [a, b, c]) upstream.calls.length = 0;
    expect(await sendAll(proxy, ordersCalls)).toEqual([200, 200, 200, 200]);
    expect(await sendAll(proxy, ["GET /v1/stock/1", "HEAD /v1/stock/1", "GET /v1/evil/1"])).toEqual([200, 200, 200]);
    expect(await sendAll(proxy, ["POST /shop.v1.Orders/Later", "GET /anything"])).toEqual([404, 404]);
    expect([a.calls, b.calls, c.calls]).toEqual([ordersReceived, ["Count t", "Count t"], ["Steal t"]]);
  }
  const conflict = `service shop.v1.Orders belongs to ${a.authority}`;
  expect(proxy.descriptorReloads.map(({ conflicts }) => conflicts)).toEqual([[], [], [conflict]]);
  // Without earlier descriptors, the upstream serves nothing, and the others start and reload.
  const next = await open(upstreams);
  expect(next.descriptorReloads.map(({ problem }) => problem)).toEqual([undefined, undefined, problems.join("\n")]);
  c.calls.length = 0;
  expect(await sendAll(next, [...ordersCalls, "GET /v1/stock/1"])).toEqual([200, 200, 200, 200, 200]);
  expect(await sendAll(next, ["GET /v1/evil/1", "POST /evil.v1.Evil/Steal"])).toEqual([503, 503]);
  b.offer(stock, serviceWithRoutes("stock.v1.More", { Get: [] }));
  expect(await next.reload()).toMatchObject({ problems });
  expect(next.services.map(({ typeName }) => typeName)).toContain("stock.v1.More");
  c.offer(harmless);
  expect(await next.reload()).toMatchObject({ problems: [] });
  expect([await send(next, "GET /v1/evil/1"), c.calls]).toEqual([200, ["Steal t"]]);
});

test("an upstream's new routes are served although a later one has claimed them before", async () => {
  const squatter = serviceWithRoutes("evil.v1.Evil", { Steal: ["GET /v2/orders/{id}"], Other: ["GET /v1/evil/{id}"] });
  const [a, b, c] = [await start(orders), await start(squatter), await start(stock)];
  const proxy = await open([reflected(a, "shop.*"), reflected(b, "evil.*"), reflected(c, "stock.*")]);
  expect(await sendAll(proxy, ["GET /v2/orders/7", "GET /v1/evil/1"])).toEqual([200, 200]);
  a.offer(serviceWithRoutes("shop.v1.Orders", { Get: ["GET /v2/orders/{id}"] }));
  for (let reload = 0; reload < 2; reload++) {
    expect((await proxy.reload()).problems).toEqual([]);
    b.calls.length = 0;
    expect(await sendAll(proxy, ["GET /v2/orders/7", "GET /v1/evil/1", "GET /v1/stock/1"])).toEqual([200, 404, 200]);
    expect([await send(proxy, "POST /evil.v1.Evil/Other"), b.calls]).toEqual([200, ["Other t"]]);
  }
  const clash = `route GET /v2/orders/{id} of evil.v1.Evil.Steal belongs to ${a.authority}`;
  expect(proxy.descriptorReloads.map(({ conflicts }) => conflicts)).toEqual([[], [clash], []]);
  expect(a.calls).toEqual(["Get t", "Get t"]);
});

test("a rule takes precedence over an earlier upstream's annotations", async () => {
  const [a, b, c] = [await start(evil, claimed), await start(orders), await start(stock)];
  const rules = [
    { selector: "shop.v1.Orders.Delete", pattern: { case: "delete", value: "/v1/orders/{id}" } },
    { selector: "shop.v1.Orders.Get", pattern: { case: "get", value: "/v1/orders/{id}" } },
  ] as const;
  for (const options of [{ rest: { rules } }, {}]) {
    const ruled = options.rest === undefined ? { rules } : {};
    const upstreams = [reflected(a, "evil.*"), reflected(b, "shop.*", ruled), reflected(c, "stock.*")];
    const proxy = await open(upstreams, options);
    b.calls.length = 0;
    expect(await sendAll(proxy, ["DELETE /v1/orders/7", "GET /v1/orders/7"])).toEqual([200, 200]);
    expect([a.calls, b.calls]).toEqual([[], ["Delete t", "Get t"]]);
    const problem = refusedRoute(a, "DELETE /v1/orders/7 of evil.v1.Evil.Steal", b.authority);
    expect(proxy.descriptorReloads[0]?.problem).toContain(problem);
    // The rule applies before its RPC's upstream is known, too.
    await b.stop();
    const later = await open(upstreams, options);
    expect([await sendAll(later, ["DELETE /v1/orders/7", "GET /v1/orders/7"]), a.calls]).toEqual([[503, 503], []]);
    await b.start();
  }
});

test("calls to an upstream get 503 until its descriptors are known", async () => {
  const [a, b, c] = [await start(orders), await start(evil, claimed), await start(stock)];
  await a.stop();
  const proxy = await open([reflected(a, "shop.*"), reflected(c, "stock.*"), reflected(b, "evil.*")]);
  for (let times = 0; times < 2; times++) {
    expect(await sendAll(proxy, ordersCalls)).toEqual([503, 503, 503, 503]);
    expect(await send(proxy, "POST /shop.v1.Orders/Later")).toBe(503);
    // The first upstream's services are known, but its routes are not.
    expect(await sendAll(proxy, ["GET /v1/evil/1", "POST /evil.v1.Evil/Steal"])).toEqual([503, 200]);
    await proxy.reload();
  }
  expect(b.calls).toEqual(["Steal t", "Steal t"]);
  const waits = `its REST routes are not served before the descriptors of ${a.authority} are known`;
  expect(proxy.descriptorReloads[1]?.conflicts).toEqual([waits]);
  await a.start();
  await expect.poll(() => proxy.services.length).toBe(3);
  expect(await sendAll(proxy, ordersCalls)).toEqual([200, 200, 200, 200]);
  // The routes of the hostile upstream, whose descriptors are in use already, are not served.
  const others = ["GET /v1/evil/1", "GET /v1/stock/1", "POST /evil.v1.Evil/Steal"];
  expect(await sendAll(proxy, others)).toEqual([404, 200, 200]);
  expect([a.calls, b.calls.length, c.calls]).toEqual([ordersReceived, 3, ["Count t"]]);
  const clash = `route DELETE /v1/orders/7 of evil.v1.Evil.Steal belongs to ${a.authority}`;
  expect(proxy.descriptorReloads[2]).toMatchObject({ problem: undefined, conflicts: expect.arrayContaining([clash]) });
});

test("calls to a stopped upstream get 503 even after others are reloaded", async () => {
  const [a, b] = [await start(orders), await start(evil)];
  const proxy = await open([reflected(a, "shop.*"), reflected(b, "evil.*")]);
  await a.stop();
  const wild = serviceWithRoutes("evil.v1.Evil", { Steal: ["DELETE /v1/{id}/7"] });
  for (const service of [evil, wild]) {
    b.offer(service, claimed);
    await proxy.reload();
    expect([await sendAll(proxy, ordersCalls), b.calls]).toEqual([[503, 503, 503, 503], []]);
  }
  expect(proxy.descriptorReloads[1]).toMatchObject({
    conflicts: [`service shop.v1.Orders belongs to ${a.authority}`],
    problem: refusedRoute(b, "DELETE /v1/{id}/7 of evil.v1.Evil.Steal", a.authority),
  });
});

const invalid = [
  ["an invalid template", serviceWithRoutes("evil.v1.Evil", { Steal: ["GET v1"] })],
  ["only services of other upstreams", serviceWithRoutes("other.v1.Evil", { A: [] })],
] as const;

test.each(invalid)("an upstream with %s does not prevent reloads or the start", async (_name, service) => {
  const [a, b] = [await start(orders), await start(harmless)];
  const upstreams = [reflected(b, "evil.*"), reflected(a, "shop.*")];
  const proxy = await open(upstreams);
  b.offer(service);
  for (const added of ["Later", "Latest"]) {
    a.offer(serviceWithRoutes("shop.v1.Orders", { Get: ["GET /v1/orders/{id}"], [added]: [] }));
    const report = await proxy.reload();
    expect(report.added).toEqual([`/shop.v1.Orders/${added}`]);
    expect(report.problems.length).toBeGreaterThan(0);
    expect(proxy.descriptorReloads).toMatchObject([{ problem: expect.any(String) }, { problem: undefined }]);
    expect(await send(proxy, "POST /evil.v1.Evil/Steal")).toBe(200);
  }
  const next = await open(upstreams);
  expect(next.descriptorReloads).toMatchObject([{ problem: expect.any(String) }, { problem: undefined }]);
  expect(await sendAll(next, ["GET /v1/orders/7", "POST /evil.v1.Evil/Steal"])).toEqual([200, 503]);
  b.offer(harmless);
  expect((await next.reload()).problems).toEqual([]);
  expect(await send(next, "POST /evil.v1.Evil/Steal")).toBe(200);
});

test("an upstream that removes a configured RPC does not affect other upstreams", async () => {
  const [a, b] = [await start(orders), await start(stock)];
  const rest = {
    omit: ["stock.v1.Stock.Count"],
    rules: [{ selector: "stock.v1.Stock.Count", pattern: { case: "get", value: "/v1/s" } }],
  } as const;
  const upstreams = [reflected(a, "shop.*"), reflected(b, "stock.*")];
  const proxy = await open(upstreams, { rest });
  b.offer(serviceWithRoutes("stock.v1.Other", { Count: [] }));
  expect((await proxy.reload()).problems).toEqual([]);
  expect(await send(await open(upstreams, { rest }), "GET /v1/orders/7")).toBe(200);
});

test("an upstream without service patterns does not replace services of others", async () => {
  const [a, b] = [await start(orders), await start(claimed, stock, evil)];
  const local = serviceWithRoutes("evil.v1.Evil", { Steal: ["GET /v1/evil/{id}"] });
  const called: string[] = [];
  const handlers = local.methods.map(({ localName }) => [localName, () => ({ id: String(called.push("local")) })]);
  const upstreams = [
    { upstream: b.address, descriptors: "reflection" as const },
    { upstream: a.address, descriptors: descriptorSetOf(orders.file) },
  ];
  const routes: ProxyOptions["routes"] = (router) => router.service(local, Object.fromEntries(handlers));
  const proxy = await open(upstreams, { routes });
  const calls = ["POST /shop.v1.Orders/Get", "POST /evil.v1.Evil/Steal", "GET /v1/evil/1"];
  expect(await sendAll(proxy, calls)).toEqual([200, 200, 200]);
  expect([a.calls, b.calls, called]).toEqual([["Get t"], [], ["local", "local"]]);
  expect(proxy.descriptorReloads.map(({ conflicts }) => conflicts)).toEqual([
    [`service evil.v1.Evil belongs to this server`, `service shop.v1.Orders belongs to ${a.authority}`],
    [],
  ]);
});

test("reconfigure accepts an invalid upstream, but rejects invalid rules", async () => {
  const [a, b] = [await start(orders), await start(stock)];
  const upstreams = [reflected(a, "shop.*"), reflected(b, "stock.*")];
  const proxy = await open(upstreams);
  b.offer(serviceWithRoutes("stock.v1.Stock", { Count: ["GET v1"] }));
  for (let times = 0; times < 2; times++) {
    await proxy.reconfigure({ upstreams });
    expect(proxy.descriptorReloads).toMatchObject([{ problem: undefined }, { problem: expect.any(String) }]);
    expect(await sendAll(proxy, ["GET /v1/orders/7", "GET /v1/stock/1"])).toEqual([200, 200]);
  }
  b.offer(stock);
  for (let times = 0; times < 2; times++) {
    const rules = [{ selector: "stock.v1.Stock.Nope", pattern: { case: "get", value: "/v1/s" } }] as const;
    await expect(proxy.reconfigure({ upstreams, rest: { rules } })).rejects.toMatchObject({ code: "ERR_HTTP_RULES" });
    expect(await sendAll(proxy, ["GET /v1/orders/7", "GET /v1/stock/1"])).toEqual([200, 200]);
  }
});

test.each([
  { name: "a descriptor file after reloads without changes", isReflected: false },
  { name: "an unreachable upstream", isReflected: true },
])("the conflicts of $name are still reported", async ({ isReflected }) => {
  const [a, b] = [await start(orders), await start(evil, claimed)];
  const descriptors = Buffer.concat([descriptorSetOf(harmless.file), descriptorSetOf(orders.file)]);
  const ofFile = { upstream: "http://127.0.0.1:1", descriptors, services: ["evil.*"] };
  const proxy = await open([reflected(a, "shop.*"), isReflected ? reflected(b, "evil.*") : ofFile]);
  const conflicts = proxy.descriptorReloads[1]?.conflicts;
  expect(conflicts).toContain(`service shop.v1.Orders belongs to ${a.authority}`);
  await b.stop();
  for (let times = 0; times < 2; times++) {
    expect((await proxy.reload()).problems).toHaveLength(isReflected ? 1 : 0);
    expect(proxy.descriptorReloads[1]?.conflicts).toEqual(conflicts);
  }
});

/** Calls a tool over MCP. @returns whether the tool is known, and its call succeeds */
async function callTool(proxy: ProxyGateway, name: string): Promise<"called" | "failed" | "unknown"> {
  const { header, body = "" } = statelessRequest("tools/call", { name, arguments: {} });
  const headers = header.map(([...field]): [string, string] => field);
  const text = await (await proxy.fetch(new Request("http://localhost/mcp", { method: "POST", headers, body }))).text();
  return text.includes("unknown tool") ? "unknown" : text.includes('"isError":true') ? "failed" : "called";
}

test("a tool's name calls one upstream, before and after another is known", async () => {
  const honest = serviceWithRoutes("shop_v1.Orders", { GetOrder: [] });
  const hostile = serviceWithRoutes("shop.v1_Orders", { GetOrder: [] });
  const withoutTools = serviceWithRoutes("idle.v1.Idle", {});
  const [a, b, c, d] = [await start(honest), await start(hostile), await start(stock), await start(withoutTools)];
  await a.stop();
  // The program gives one name to RPCs of two upstreams.
  const mcp = createMcp({ tools: ({ parent }) => parent.typeName !== "stock.v1.Stock" || { name: "get_order" } });
  const [name = ""] = mcp.toolNamesOf(honest.methods).values();
  const [other = ""] = mcp.toolNamesOf(hostile.methods).values();
  const ofFirst = [reflected(a, "shop_v1.*"), reflected(b, "shop.*")];
  const proxy = await open([...ofFirst, reflected(c, "stock.*"), reflected(d, "idle.*")], { mcp });
  for (let times = 0; times < 2; times++) {
    for (const tool of [name, other, "get_order"]) expect(await callTool(proxy, tool)).toBe("unknown");
    await proxy.reload();
  }
  expect([b.calls, c.calls]).toEqual([[], []]);
  const waits = [`its tools are not served before the descriptors of ${a.authority} are known`];
  expect(proxy.descriptorReloads.map(({ conflicts }) => conflicts.slice(-1))).toEqual([[], waits, waits, []]);
  await a.start();
  await expect.poll(() => proxy.services.length).toBe(4);
  for (let times = 0; times < 2; times++) {
    for (const upstream of [a, b, c]) upstream.calls.length = 0;
    for (const tool of [name, other, "get_order"]) expect(await callTool(proxy, tool)).toBe("called");
    expect([a.calls.length, b.calls.length, c.calls.length]).toEqual([1, 1, 1]);
    await a.stop();
    await proxy.reload();
    expect([await callTool(proxy, name), b.calls.length, c.calls.length]).toEqual(["failed", 1, 1]);
    await a.start();
    await expect.poll(() => callTool(proxy, name)).toBe("called");
  }
});
