import { expect, onTestFinished, test } from "vitest";
import { createMcp } from "../../gateway/src/mcp/index.ts";
import { descriptorSetOf, restrictedServices, serviceWithRoutes, GreenhouseService } from "@protoport/testing/proxy";
import { createProxy, type ProxyGateway, type ProxyOptions } from "../src/create-proxy.ts";

async function openProxy(options: ProxyOptions): Promise<ProxyGateway> {
  const proxy = await createProxy(options);
  onTestFinished(() => proxy.close());
  return proxy;
}

const upstream = "http://127.0.0.1:1";
const other = { upstream, descriptors: descriptorSetOf(serviceWithRoutes("b.B", { Get: [] }).file) };
const remedy = "add the RPC to rest.omit, or replace its rule in rest.rules";

test("createProxy rejects routes at paths of endpoints, MCP and local RPCs, except with atRoot", async () => {
  const service = serviceWithRoutes("a.A", { Get: ["GET /root", "GET /page", "GET /tools", "GET /local/7"] });
  const local = serviceWithRoutes("l.L", { Get: ["GET /local/{id}"] });
  const endpoint = { open: true, yieldsToRules: true, handle: () => ({ httpStatus: 200, body: "" }) };
  const endpoints = ["/root", "/page"].map((path) => ({ ...endpoint, path, atRoot: path === "/root" }));
  const mcp = createMcp({ path: "/tools", tools: ["b.*"] });
  const upstreams = [{ upstream, descriptors: descriptorSetOf(service.file) }, other];
  const routes: ProxyOptions["routes"] = (router) => router.service(local, {});
  const options = { upstreams, requestPathPrefix: "/prefix", endpoints, mcp, routes };
  const message = ["/page", "/tools", "/local/7"]
    .map(
      (path) =>
        `127.0.0.1:1: cannot use the descriptors: route GET ${path} of a.A.Get belongs to this server; ${remedy}`,
    )
    .join("\n");
  await expect(createProxy(options)).rejects.toThrow(expect.objectContaining({ message, code: "ERR_DESCRIPTORS" }));
  const { descriptorReloads } = await openProxy({ ...options, rest: { omit: ["a.A.Get"] } });
  expect(descriptorReloads.map(({ problem, conflicts }) => [problem, conflicts])).toEqual([
    [undefined, []],
    [undefined, []],
  ]);
});

test("an RPC that one upstream hides and another serves keeps its rule", async () => {
  const [maintenance] = restrictedServices().filter(({ name }) => name === "Maintenance");
  const [method] = maintenance?.methods ?? [];
  if (method === undefined) throw new TypeError("no internal service");
  const { typeName, file } = method.parent;
  const served = serviceWithRoutes(typeName, { [method.name]: [] });
  const selector = `${typeName}.${method.name}`;
  const rules = [{ selector, pattern: { case: "get", value: "/ruled" } }] as const;
  const upstreams = [file, served.file].map((each) => ({ upstream, descriptors: descriptorSetOf(each) }));
  const { hiddenRpcs, rest } = await openProxy({ upstreams, visibility: { allow: [] }, rest: { rules } });
  expect([rest.rules?.length, hiddenRpcs.has(selector)]).toEqual([1, false]);
});

test("a rule of the proxy that names a hidden field is refused with a hint at visibility", async () => {
  const [service] = restrictedServices().filter(({ name }) => name === "GreenhouseService");
  if (service === undefined) throw new TypeError("no greenhouse");
  const [selector, otherSelector] = [`${service.typeName}.WaterBed`, "b.B.Get"];
  const open = (path: string, allow: readonly string[], of = selector): Promise<ProxyGateway> =>
    openProxy({
      upstreams: [{ upstream, descriptors: descriptorSetOf(service.file) }, other],
      visibility: { allow },
      rest: { rules: [{ selector: of, pattern: { case: "post", value: path } }] },
    });
  await expect(open("/notes/{note}", [])).rejects.toThrow(
    /WaterBed: POST \/notes\/\{note\}: path variable "note" is not a field of [\w.]+, or visibility hides it$/m,
  );
  await expect(open("/notes/{note}", [], otherSelector)).rejects.toThrow(/is not a field of [\w.]+$/m);
  expect((await open("/notes/{note}", ["INTERNAL"])).services).toHaveLength(3);
});

test("visibilityLabels contains the labels of the routes that the process serves", async () => {
  const [greenhouse, maintenance] = restrictedServices();
  const proxy = await openProxy({
    upstreams: [other],
    visibility: { allow: ["INTERNAL"] },
    routes: (router) => {
      for (const service of [greenhouse, maintenance]) if (service !== undefined) router.service(service, {});
    },
  });
  expect([...proxy.visibilityLabels]).toContain("INTERNAL");
});

test("a method without a known route gets 503 while an upstream is unreachable", async () => {
  const known = { upstream, descriptors: descriptorSetOf(GreenhouseService.file) };
  const proxy = await openProxy({ upstreams: [known, { upstream, descriptors: "reflection" }] });
  expect((await proxy.fetch(new Request("http://a/beds/7:water", { method: "DELETE" }))).status).toBe(503);
});
