import { createContextValues } from "@connectrpc/connect";
import { expect, onTestFinished, test, vi } from "vitest";
import type { Admit } from "../../gateway/src/index.ts";
import { createMcp } from "../../gateway/src/mcp/index.ts";
import { getReadingProcedure, waterBedProcedure } from "../../testing/src/gateway/greenhouse.ts";
import { statelessRequest, toolNameOf } from "../../testing/src/gateway/mcp.ts";
import { scopedGreenhouse } from "../../testing/src/gateway/restricted.ts";
import { createTestGateway } from "../../testing/src/gateway/test-gateway.ts";
import { KitchenSink } from "../../testing/src/gen/kitchensink/v1/kitchen_sink_pb.ts";
import { createBearerAuth } from "../src/bearer-auth.ts";

/** Returns the warnings about a gateway whose calls are admitted by a wrapper of `admit`. */
function warningsOf(wrap: (inner: Admit) => Admit, procedure: string | undefined): readonly unknown[] {
  const warn = vi.spyOn(process, "emitWarning").mockReturnValue();
  onTestFinished(() => warn.mockRestore());
  const principal = { kind: "principal", subject: "ada", issuer: undefined, scopes: new Set<string>() } as const;
  const admit = wrap(createBearerAuth({ verify: () => principal }, { realm: "r" }).admit);
  createTestGateway({ routes: (router) => router.service(KitchenSink, {}), admit });
  for (let count = 0; count < 2; count++) {
    const request = { authorization: "Bearer t", connection: {}, contextValues: createContextValues(), procedure };
    const check: unknown = Reflect.apply(admit, undefined, [request]);
    if (typeof check === "function") check(waterBedProcedure);
  }
  return warn.mock.calls.map(([warning]) => warning);
}

const wrapped =
  (inner: Admit): Admit =>
  (request) =>
    inner(request);

// A wrapper that keeps the check refuses the start.
test.each<{ name: string; requiredScope?: () => string }>([
  { name: "no scopes" },
  { name: "another scope", requiredScope: () => "other" },
])("calls fail if a wrapper without requireChecked requires $name for them", async ({ requiredScope }) => {
  const warn = vi.spyOn(process, "emitWarning").mockReturnValue();
  onTestFinished(() => warn.mockRestore());
  const principal = { kind: "principal", subject: "ada", issuer: undefined, scopes: "all" } as const;
  const auth = createBearerAuth({ verify: () => principal }, { realm: "r", requiredScope });
  const faults: unknown[] = [];
  const greenhouse = scopedGreenhouse({ GetReading: [], WaterBed: ["beds.water"] });
  const gateway = createTestGateway({
    routes: (router) => {
      router.service(KitchenSink, { types: () => ({}) });
      router.service(greenhouse, { getReading: () => ({}), waterBed: () => ({}) });
    },
    mcp: createMcp({ tools: ["greenhouse.v1.*"] }),
    admit: wrapped(auth.admit),
    onFault: (error) => faults.push(error instanceof Error && error.message),
  });
  const post = async (path: string, header: object, body: string): Promise<[number, string]> => {
    const headers = { authorization: "Bearer t", "content-type": "application/json", ...header };
    const response = await gateway.fetch(new Request(`http://localhost${path}`, { method: "POST", headers, body }));
    return [response.status, await response.text()];
  };
  for (const procedure of [`/${KitchenSink.typeName}/Types`, getReadingProcedure])
    expect((await post(procedure, {}, "{}"))[0]).toBe(200);
  expect(faults).toEqual([]);
  for (let time = 0; time < 2; time++) expect((await post(waterBedProcedure, {}, "{}"))[0]).toBe(500);
  const callTool = async (procedure: string): Promise<string> => {
    const { path, header, body } = statelessRequest("tools/call", { name: toolNameOf(procedure), arguments: {} });
    return (await post(path, Object.fromEntries(header), String(body)))[1];
  };
  expect(await callTool(getReadingProcedure)).toContain('"result"');
  expect(await callTool(waterBedProcedure)).not.toContain('"result"');
  const problem = expect.stringMatching(/^the option required_scopes of greenhouse.*\.WaterBed is not checked: /);
  expect([faults, warn.mock.calls]).toEqual([Array(3).fill(problem), []]);
});

test.each<{ name: string; procedure: string | undefined }>([
  { name: "RPC", procedure: waterBedProcedure },
  { name: "MCP", procedure: undefined },
])("$name calls without a descriptor emit one warning if a wrapper lacks requireChecked", ({ procedure }) => {
  const warning = expect.stringContaining("createBearerAuth does not check the option required_scopes");
  expect(warningsOf(wrapped, procedure)).toEqual([warning]);
});

test("a wrapper with requireChecked emits no warning", () => {
  const keeping = (inner: Admit): Admit => Object.assign(wrapped(inner), { requireChecked: inner.requireChecked });
  expect(warningsOf(keeping, waterBedProcedure)).toEqual([]);
});
