import { afterAll, expect, test } from "vitest";
import { createSigningKey, createTempFolder, startIdentityProvider } from "@protoport/testing/process";
// oxfmt-ignore
import { descriptorSetOf, OrderService, ProxyCommand, runProxyCommand, scopedGreenhouse
} from "@protoport/testing/proxy";
import { SignupService } from "../../../testing/src/gen/signup/v1/signup_pb.ts";

const folder = createTempFolder();
afterAll(() => folder[Symbol.dispose]());
const service = scopedGreenhouse({ WaterBed: ["beds:water"] });
const upstreams = [service, OrderService].map(({ file, typeName }, at) => ({
  addresses: [`http://127.0.0.1:${at + 1}`],
  descriptors: folder.write(`${at}.binpb`, descriptorSetOf(file)),
  services: [typeName],
}));
const served = { listen: { port: 0 }, drain: { delayMs: 0, timeoutMs: 0 }, upstreams };

test("--openapi prints the document that a proxy with the same settings serves", async () => {
  using provider = await startIdentityProvider(await createSigningKey("ES256", "key"));
  // oxfmt-ignore
  const settings = {
    ...served,
    openapi: { title: "Garden", version: "7", license: { name: "MIT" }, operationIds: "full" },
    rest: { errorBody: { reason: "{code}" }, json: { names: "proto" },
      services: [{ name: OrderService.typeName, profile: "grpc-gateway" }] },
    mcp: { tools: ["orders.*"] },
    authentication: { jwt: [{ issuer: provider.issuer, audiences: ["garden"] }], open: [OrderService.typeName],
      scopes: { "greenhouse.*": "beds:water" } },
  };
  const config = folder.write("all.yaml", JSON.stringify(settings));
  const printing = new ProxyCommand(["--config", config, "--openapi"]);
  expect(await printing.done).toBe(0);
  await using command = new ProxyCommand(["--config", config]);
  const document = await (await fetch(`${await command.serving}/openapi.json`)).text();
  expect(printing.printed).toEqual([document]);
  const water = { operationId: "greenhouse_v1_GreenhouseService_waterBed", security: [{ bearerAuth: ["beds:water"] }] };
  const ofOrder = { operationId: "orders_v1_OrderService_deleteOrder", security: [] };
  expect(JSON.parse(document)).toMatchObject({
    info: { title: "Garden", version: "7", license: { name: "MIT" } },
    paths: { "/beds/{bed}:water": { post: water }, "/orders/{id}": { delete: ofOrder } },
    components: { schemas: { ErrorBody: { required: ["reason"] } } },
  });
});

test.each(["--check", "--json"])("%s cannot be combined with --openapi", async (flag) => {
  const config = folder.write("served.yaml", JSON.stringify(served));
  const refused = new ProxyCommand(["--config", config, "--openapi", flag]);
  expect([await refused.done, refused.printed]).toEqual([2, []]);
  expect(refused.errors.join("\n")).toContain("--openapi cannot be combined with --check or --json");
});

test("--openapi is refused without docs", async () => {
  const config = folder.write("no-docs.yaml", JSON.stringify({ ...served, docs: false }));
  const refused = new ProxyCommand(["--config", config, "--openapi"]);
  expect(await refused.done).toBe(2);
  expect(refused.errors.join("\n")).toContain("docs must be true for --openapi");
});

test("--openapi includes the validation rules with --validate", async () => {
  const descriptors = folder.write("signup.binpb", descriptorSetOf(SignupService.file));
  const upstream = ["--upstream", "http://127.0.0.1:1", "--descriptors", descriptors];
  const { printed } = await runProxyCommand(...upstream, "--validate", "--openapi");
  expect(JSON.parse(printed).components.schemas.Account.properties.name).toMatchObject({ minLength: 2 });
  const { printed: without } = await runProxyCommand(...upstream, "--openapi");
  expect(without).not.toContain("minLength");
});
