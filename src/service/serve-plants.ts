import type { GatewayOptions, RestOptions } from "@plantstore/gateway";
import { createHealthService, Health, healthRequestBytesMax, type Readiness } from "@plantstore/gateway/health";
import { type OptionNames, refuseUnknownOptions, required } from "@plantstore/gateway/options";
import { createReflectionService, ServerReflection, ServerReflectionV1Alpha } from "@plantstore/gateway/reflection";
import { createBearerAuth, type TokenVerifier } from "@plantstore/auth";
import { createSafeErrors, type Log } from "@plantstore/telemetry/logs";
import { PlantService } from "../gen/es/plantstore/v1/plant_service_pb.ts";
import { createCredentialInterceptor } from "./credential-interceptor.ts";
import { createErrorInterceptor } from "./error-interceptor.ts";
import { errorRecord } from "./error-record.ts";
import { createPlantService } from "./plant-service.ts";
import type { PlantStore } from "./plant-store.ts";
import { policyOf } from "./rpc-policy.ts";

/** The dependencies of {@link servePlants}. */
export interface PlantParts {
  readonly store: PlantStore;
  /** Decides which bearer tokens are valid. */
  readonly verifier: TokenVerifier;
  /** What health checks report. */
  readonly readiness: Readiness;
  /** Gets a line for each internal error. */
  readonly log: Log;
  /** The URL of the RFC 9728 document that challenges point to. */
  readonly resourceMetadata?: string | undefined;
}

const plantPartsNames: OptionNames<PlantParts> = {
  store: required,
  verifier: required,
  readiness: required,
  log: required,
  resourceMetadata: true,
};

/** What {@link servePlants} returns. */
export type PlantServing = Required<
  Pick<GatewayOptions, "routes" | "interceptors" | "admit" | "toError" | "rest" | "readMaxBytes" | "binaryOptions">
>;

// 64 KiB: messages here are an id or a name.
const messageBytesMax = 64 * 1024;

/** How the plant store responds on REST: an error is a record, and a deletion has status 204 without a body. */
export const restOptions: RestOptions = {
  errorRecord,
  emptyResponse: 204,
  // Of the RPC protocols. On REST, `?x=1` is refused because no service is `lenient`.
  json: { unknownFields: "reject", canonicalIntegers: true },
};

/**
 * Returns the options of the one Connect server that serves `PlantService` over gRPC, gRPC-Web, Connect and REST, with
 * health checks and server reflection. `createPlantServer` passes them to `createGateway`, which listens.
 *
 * `routes` and `interceptors` work in any Connect server. `admit` makes the same check as the credential interceptor from
 * the header alone, before the body is read, and also for paths without an RPC. `toError` hides errors that are thrown
 * outside of the interceptors, as the error interceptor does.
 */
export function servePlants(parts: PlantParts): PlantServing {
  refuseUnknownOptions(parts, plantPartsNames, "servePlants");
  const { store, verifier, readiness, log, resourceMetadata } = parts;
  const auth = createBearerAuth(verifier, {
    realm: "plantstore",
    requiredScope: (procedure) => policyOf(procedure)?.scope,
    open: [Health.typeName],
    resourceMetadata,
  });
  const toError = createSafeErrors({ log });
  return {
    routes: (router) => {
      router.service(PlantService, createPlantService(store));
      router.service(Health, createHealthService({ readiness, services: [PlantService.typeName] }), {
        readMaxBytes: healthRequestBytesMax,
      });
      const reflection = createReflectionService([PlantService, Health, ServerReflection, ServerReflectionV1Alpha]);
      router.service(ServerReflection, reflection).service(ServerReflectionV1Alpha, reflection);
    },
    interceptors: [createErrorInterceptor(toError), createCredentialInterceptor(auth)],
    admit: auth.admit,
    toError,
    rest: restOptions,
    readMaxBytes: messageBytesMax,
    // Unknown fields are never read, and one of 2 bytes would occupy 165 until its call ends.
    binaryOptions: { readUnknownFields: false },
  };
}
