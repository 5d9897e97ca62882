import { writeFileSync } from "node:fs";
import { afterAll, beforeAll, expect, test } from "vitest";
import { createProxy, parseServiceRules } from "../../../../proxy/src/create-proxy.ts";
import { createHealthService, Health, Readiness } from "../../../../gateway/src/health/index.ts";
import { createGateway } from "../../../../gateway/src/index.ts";
import { createReflectionService, ServerReflection } from "../../../../gateway/src/reflection/index.ts";
import { blocksRunBy } from "../../../support/docs/page-blocks.ts";
import { ProxyCommand } from "../../../../testing/src/gateway/proxy-command.ts";
import { createTempFolder } from "@protoport/testing/process";

// Runs the command and the program in protoport/docs/how-to/proxy.md in front of a server with the health service.

const blocks = blocksRunBy("protoport/test/suites/check/examples/documented-proxy.test.ts");
const textIn = (language: string): string => blocks.find((block) => block.language === language)?.text ?? "";
const [yaml, session, program] = [textIn("yaml"), textIn("console"), textIn("ts")];
const [, command = "", serves = "", url = "", body = ""] =
  /^\$ npx @protoport\/proxy (.*)\n.*? (serves .*)\n\$ curl (.*)\n(.*)$/.exec(session) ?? [];

const folder = createTempFolder();
const upstream = createGateway({
  routes: (router) => {
    router.service(Health, createHealthService({ readiness: new Readiness({}), services: [] }));
    router.service(ServerReflection, createReflectionService([Health, ServerReflection]));
  },
});
let address: string;
beforeAll(async () => {
  address = `dns:127.0.0.1:${String((await upstream.listen({ host: "127.0.0.1" })).port)}`;
  writeFileSync(folder.file("rules.yaml"), yaml);
});
afterAll(async () => {
  await upstream.close();
  folder[Symbol.dispose]();
});

test("the command in protoport/docs/how-to/proxy.md serves the documented response", async () => {
  const here = command.replace("dns:localhost:50051", address).replace("rules.yaml", folder.file("rules.yaml"));
  const words = here.split(" ").map((word) => word.replaceAll("'", ""));
  await using running = new ProxyCommand([...words, "--port", "0", "--drain-delay-ms", "0"]);
  const baseUrl = await running.serving;
  expect(running.lines).toEqual([expect.stringContaining(` ${serves}`)]);
  expect(await (await fetch(url.replace("http://127.0.0.1:8080", baseUrl))).text()).toBe(body);
});

const services = ["grpc.health.*"];

test("the program in protoport/docs/how-to/proxy.md serves the documented response", async () => {
  const option = /upstreams: \[\{ upstream: "(.*?)", descriptors: "(.*?)", rules, services \}\]/.exec(program);
  expect(option?.slice(1)).toEqual(["dns:localhost:50051", "reflection"]);
  const rules = parseServiceRules(yaml);
  const proxy = await createProxy({ upstreams: [{ upstream: address, descriptors: "reflection", rules, services }] });
  try {
    expect(await (await proxy.fetch(new Request("http://localhost/health"))).text()).toBe(body);
  } finally {
    await proxy.close();
  }
});
