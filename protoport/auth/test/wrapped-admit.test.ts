import { createContextValues } from "@connectrpc/connect";
import { expect, onTestFinished, test, vi } from "vitest";
import type { Admit } from "../../gateway/src/index.ts";
import { waterBedProcedure } from "../../testing/src/gateway/greenhouse.ts";
import { createTestGateway } from "../../testing/src/gateway/test-engine.ts";
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

const wrapped = (inner: Admit): Admit => {
  return (request) => inner(request);
};

test.each<{ name: string; procedure: string | undefined }>([
  { name: "RPC", procedure: waterBedProcedure },
  { name: "MCP", procedure: undefined },
])("$name calls emit one warning if a wrapper lacks requireChecked", ({ procedure }) => {
  const warning = expect.stringContaining("createBearerAuth does not check the option required_scopes");
  expect(warningsOf(wrapped, procedure)).toEqual([warning]);
});

test("a wrapper with requireChecked emits no warning", () => {
  const keeping = (inner: Admit): Admit => Object.assign(wrapped(inner), { requireChecked: inner.requireChecked });
  expect(warningsOf(keeping, waterBedProcedure)).toEqual([]);
});
