import type { GatewayOptions } from "@protoport/gateway";
import { Readiness } from "@protoport/gateway/health";
import { silentLog } from "@protoport/telemetry/logs";
import { createPlantGatewayOptions } from "../../src/service/index.ts";
import { noCallTable } from "../../test/contract/no-call-table.ts";
import { extraCases, pathCases, plant, toHttpRequest } from "../../test/contract/rest-table.ts";
import { situations } from "../../test/contract/situations.ts";
import { openSituationStore } from "../../test/support/plants/situation-store.ts";
import { authorized, testVerifier } from "../../test/support/server/plant-server.ts";
import { wireFormats } from "../../protoport/testing/src/gateway/wire-format.ts";
import type { NamedRequest } from "../../protoport/tools/record-responses/named-request.ts";

/** Plants that still exist after their deletion, so that each transport finds the same plants. */
class Perennials extends Set<bigint> {
  override delete(id: bigint): boolean {
    return this.has(id);
  }
}

/** Returns options for a gateway that serves the plant store, without a log or readiness checks. */
export function contractOptions(): GatewayOptions {
  const store = openSituationStore(new Perennials([plant]));
  return createPlantGatewayOptions({ store, verifier: testVerifier, readiness: new Readiness({}), log: silentLog });
}

const calls: readonly NamedRequest[] = Object.values(situations).flatMap((ofRpc) =>
  ofRpc.flatMap(({ name, request, formats }) =>
    Object.values(wireFormats)
      .filter((format) => formats?.includes(format.name) ?? true)
      .map((format) => ({ ...request(format, plant), name: `${name} by ${format.name}` })),
  ),
);

const rest: readonly NamedRequest[] = [...pathCases, ...extraCases].map(({ name, request }) => ({
  ...toHttpRequest(request, authorized),
  name,
}));

const noCalls: readonly NamedRequest[] = noCallTable.flatMap(({ name, request }) => [
  { ...request, header: [...request.header, authorized], name },
  { ...request, name: `${name}, without a credential` },
]);

/** The requests in the plant store's contract. */
export const contractRequests: readonly NamedRequest[] = [...calls, ...rest, ...noCalls];
