import type { DescService } from "@bufbuild/protobuf";
import { afterEach, expect, test, vi } from "vitest";
import type { Admit } from "../../../gateway/src/index.ts";
import { getReadingProcedure, waterBedProcedure } from "../../../testing/src/gateway/greenhouse.ts";
import { requestFrom } from "../../../testing/src/gateway/proxy.ts";
import { scopedGreenhouse } from "../../../testing/src/gateway/restricted.ts";
import { openAccessChecks } from "../../src/command/access-checks.ts";
import { toProxySettings } from "../../src/command/proxy-settings.ts";
import { refuseUncheckedRpcs } from "../../src/command/unchecked-scopes.ts";
import { readProxyConfiguration } from "../../src/settings/index.ts";

afterEach(() => vi.unstubAllEnvs());

/** An `admit` that accepts every call of RPCs whose scopes the settings require. Dispose of it with `using`. */
interface ScopedAdmit extends Disposable {
  readonly admit: Admit;
  /** Replaces the services, as when descriptors are reloaded. */
  serve(...services: readonly DescService[]): void;
}

/** Returns an `admit` whose settings require no scopes. */
async function admitWithoutScopes(): Promise<ScopedAdmit> {
  vi.stubEnv("PROXY_TEST_TOKEN", "a-token-of-a-shop-2026");
  const text = [
    'upstreams: [{ addresses: ["http://127.0.0.1:1"], descriptors: reflection }]',
    "authentication: { tokens: [{ env: PROXY_TEST_TOKEN }] }",
  ].join("\n");
  const settings = await toProxySettings(readProxyConfiguration({ name: "proxy.yaml", text }));
  const output = { out: () => undefined, err: () => undefined };
  const accessChecks = await openAccessChecks(settings, output);
  let served: readonly DescService[] | undefined;
  const admit = refuseUncheckedRpcs(
    () => undefined,
    { settings, accessChecks },
    () => served,
  );
  return { admit, serve: (...services) => (served = services), [Symbol.dispose]: () => accessChecks.close() };
}

const problem = `authentication.scopes lacks required_scopes of ${waterBedProcedure}`;

test("a call fails if reloaded descriptors add scopes that the settings lack", async () => {
  using scoped = await admitWithoutScopes();
  const call = (): unknown => scoped.admit(Object.assign(requestFrom("192.0.2.9"), { procedure: waterBedProcedure }));
  expect(call).not.toThrow();
  scoped.serve(scopedGreenhouse({ GetReading: [], WaterBed: [] }));
  expect(call).not.toThrow();
  scoped.serve(scopedGreenhouse({ GetReading: [], WaterBed: ["water"] }));
  expect(call).toThrow(problem);
});

test("an MCP tool call fails if the settings lack its RPC's scopes", async () => {
  using scoped = await admitWithoutScopes();
  scoped.serve(scopedGreenhouse({ GetReading: [], WaterBed: ["water"] }));
  // The procedure is undefined, because only the body names the tool.
  const authorize = await scoped.admit(requestFrom("192.0.2.9"));
  expect(() => authorize?.(getReadingProcedure)).not.toThrow();
  expect(() => authorize?.(waterBedProcedure)).toThrow(problem);
});
