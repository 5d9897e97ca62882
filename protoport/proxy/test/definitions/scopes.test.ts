import { afterAll, describe, expect, test } from "vitest";
import { createBearerAuth } from "../../../auth/src/index.ts";
import { createGateway } from "../../../gateway/src/index.ts";
import { descriptorSetOf, OrderService, runProxyCommand, scopedGreenhouse } from "@protoport/testing/proxy";
import { createTempFolder } from "@protoport/testing/process";
import { createProxyDocs } from "../../src/command/serving-parts.ts";
import { compareDefinitions, parseDefinition, writeOpenApi } from "../../src/definitions/entry.ts";
import { createRequiredScopes } from "../../src/definitions/index.ts";

const folder = createTempFolder();
afterAll(() => folder[Symbol.dispose]());
const service = scopedGreenhouse({ WaterBed: ["beds:water", "beds:write"], GetReading: [] });
const definition = parseDefinition("greenhouse", descriptorSetOf(service.file, OrderService.file));
const bearerAuth = { type: "http", scheme: "bearer" } as const;
const key = { type: "apiKey", name: "x-key", in: "header" } as const;

async function requirementsOf(options: Parameters<typeof writeOpenApi>[1]): Promise<Readonly<Record<string, unknown>>> {
  const { paths, security }: { paths: object; security: unknown } = JSON.parse(
    new TextDecoder().decode(await writeOpenApi(definition, { operationIds: "rpc", ...options })),
  );
  const operations = Object.values(paths).flatMap((path: object) => Object.values(path));
  return { all: security, ...Object.fromEntries(operations.map((each) => [each.operationId, each.security])) };
}

describe("writeOpenApi", () => {
  test.each(
    // oxfmt-ignore
    [
      { name: "adds scopes to credentials that have scopes", options: { securitySchemes: { bearerAuth, key } },
        want: { all: [{ bearerAuth: [], key: [] }], waterBed: [{ bearerAuth: ["beds:water", "beds:write"], key: [] }],
          getReading: undefined, deleteOrder: undefined } },
      { name: "adds scopes to each alternative",
        options: { securitySchemes: { bearerAuth, key }, security: [{ key: [] }, { bearerAuth: ["read"] }] },
        want: { waterBed: [{ key: [] }, { bearerAuth: ["beds:water", "beds:write"] }],
          getReading: [{ key: [] }, { bearerAuth: [] }], deleteOrder: undefined } },
      { name: "names no scopes without credentials", options: {}, want: { all: [], waterBed: undefined } },
      { name: "uses a given describeSecurity", options: { securitySchemes: { bearerAuth }, describeSecurity: () => [] },
        want: { waterBed: [], deleteOrder: [] } },
    ],
  )("$name", async ({ options, want }) => expect(await requirementsOf(options)).toMatchObject(want));

  test("the openapi command's document equals the proxy's with the same scopes", async () => {
    const rejectAll = { verify: () => ({ kind: "unknown", reason: "no token is known" }) as const };
    const scopes = { [`${service.typeName}.WaterBed`]: "beds:water beds:write" };
    const auth = createBearerAuth(rejectAll, { realm: "r", requiredScope: createRequiredScopes(scopes) });
    const describeSecurity = auth.describeSecurity("bearerAuth");
    const { endpoints } = createProxyDocs(
      () => ({ services: definition.services, rest: {} }),
      { securitySchemes: { bearerAuth }, describeSecurity },
      () => undefined,
    );
    const gateway = createGateway({ routes: () => undefined, endpoints });
    const response = await gateway.fetch(new Request("http://proxy.example/openapi.json"));
    const set = folder.write("set.binpb", descriptorSetOf(service.file, OrderService.file));
    const base = folder.write("base.json", JSON.stringify({ securitySchemes: { bearerAuth } }));
    const { printed, errors } = await runProxyCommand("openapi", set, "--base", base, "--server", "/");
    expect([errors, await response.text()]).toEqual(["", printed]);
  });
});

test.each([
  { name: "another scope", now: ["beds:water", "beds:all"], before: "a token with beds:water is accepted" },
  { name: "its first scope", old: [], now: ["beds:all"], before: "any valid token is accepted" },
  { name: "a scope instead of no option", old: undefined, now: ["beds:all"], before: "any valid token is accepted" },
  { name: "fewer scopes", now: [], before: undefined },
  { name: "no option", now: undefined, before: undefined },
])("compareDefinitions reports an RPC that requires $name only if a token loses access", async (row) => {
  const { now, before } = row;
  const old = "old" in row ? row.old : ["beds:water"];
  const [published, current] = [old, now].map((scopes) => {
    const { file } = scopedGreenhouse({ GetReading: [], ...(scopes && { WaterBed: scopes }) });
    return parseDefinition("greenhouse", descriptorSetOf(file));
  });
  if (published === undefined || current === undefined) throw new TypeError("two versions are needed");
  const { open } = await compareDefinitions(published, current);
  const change = "protoport.auth.v1.required_scopes also requires beds:all";
  const subject = `${service.typeName}.WaterBed`;
  expect(open).toMatchObject(
    before === undefined ? [] : [{ rule: "scopes-changed", severity: "error", subject, change, before }],
  );
});
