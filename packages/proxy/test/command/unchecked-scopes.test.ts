import type { DescService } from "@bufbuild/protobuf";
import { afterEach, expect, test, vi } from "vitest";
import { waterBedProcedure } from "../../../testing/src/gateway/greenhouse.ts";
import { requestFrom } from "../../../testing/src/gateway/proxy.ts";
import { scopedGreenhouse } from "../../../testing/src/gateway/restricted.ts";
import { openAdmission } from "../../src/command/admission.ts";
import { toProxySettings } from "../../src/command/proxy-settings.ts";
import { refuseUncheckedRpcs } from "../../src/command/unchecked-scopes.ts";
import { readProxyFile } from "../../src/settings/index.ts";

afterEach(() => vi.unstubAllEnvs());

test("a call fails if reloaded descriptors add scopes that the settings lack", async () => {
  vi.stubEnv("PROXY_TEST_TOKEN", "a-token-of-a-shop-2026");
  const text = [
    'upstreams: [{ addresses: ["http://127.0.0.1:1"], descriptors: reflection }]',
    "authentication: { tokens: [{ env: PROXY_TEST_TOKEN }] }",
  ].join("\n");
  const settings = await toProxySettings(readProxyFile({ name: "proxy.yaml", text }));
  const output = { out: () => undefined, err: () => undefined };
  const admission = await openAdmission(settings, output);
  let served: readonly DescService[] | undefined;
  const admit = refuseUncheckedRpcs(
    () => undefined,
    { settings, admission },
    () => served,
  );
  const call = (): unknown => admit(Object.assign(requestFrom("192.0.2.9"), { procedure: waterBedProcedure }));
  expect(call).not.toThrow();
  served = [scopedGreenhouse({ GetReading: [], WaterBed: [] })];
  expect(call).not.toThrow();
  served = [scopedGreenhouse({ GetReading: [], WaterBed: ["water"] })];
  expect(call).toThrow(`authentication.scopes does not require the scopes of ${waterBedProcedure}`);
  admission.close();
});
