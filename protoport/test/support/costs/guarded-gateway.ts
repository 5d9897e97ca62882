import { createBearerAuth, type TokenVerifier } from "../../../auth/src/index.ts";
import { createHealthService, Health, maxHealthRequestBytes, Readiness } from "../../../gateway/src/health/index.ts";
import type { Gateway } from "../../../gateway/src/index.ts";
import { GreenhouseService } from "../../../examples/gen/greenhouse/v1/greenhouse_pb.ts";
import { createTestGateway, type Field, grpcHeader, waterBedProcedure } from "@protoport/testing";

export const bearer = (token: string): Field => ["authorization", `Bearer ${token}`];
const goodToken = "good-token-0123456789";
/** The credential that the {@link createGuardedGateway} accepts. */
export const authorized: Field = bearer(goodToken);
/** The header of a gRPC call without a credential. */
export const guardedCall: readonly Field[] = grpcHeader(waterBedProcedure);

const verifier: TokenVerifier = {
  verify: ({ text }) =>
    text === goodToken
      ? { kind: "principal", subject: "alice", issuer: undefined, scopes: "all" }
      : { kind: "unknown", reason: "it is not the token of the tests" },
};

/** Creates a gateway that requires a bearer credential, and accepts small messages only. */
export function createGuardedGateway(): Gateway {
  return createTestGateway({
    routes: (router) => {
      router.service(GreenhouseService, { waterBed: ({ bed }) => ({ bed }) });
      router.service(
        Health,
        createHealthService({ readiness: new Readiness({}), services: [GreenhouseService.typeName] }),
        { readMaxBytes: maxHealthRequestBytes },
      );
    },
    readMaxBytes: 64 * 1024,
    admit: createBearerAuth(verifier, { realm: "greenhouse", open: [Health.typeName] }).admit,
  });
}
