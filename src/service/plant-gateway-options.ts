import type { GatewayOptions, RestOptions } from "@protoport/gateway";
import { createHealthService, Health, maxHealthRequestBytes, type Readiness } from "@protoport/gateway/health";
import { type OptionNames, refuseUnknownOptions, required } from "@protoport/gateway/options";
import { createReflectionService, ServerReflection, ServerReflectionV1Alpha } from "@protoport/gateway/reflection";
import { type BearerAuthOptions, createBearerAuth, type TokenVerifier } from "@protoport/auth";
import { createSafeErrors, type Log } from "@protoport/telemetry/logs";
import { PlantService } from "../gen/es/plantstore/v1/plant_service_pb.ts";
import { createErrorInterceptor } from "./error-interceptor.ts";
import { errorRecord } from "./error-record.ts";
import { createPlantService } from "./plant-service.ts";
import type { PlantStore } from "./plant-store.ts";
import { policyOf } from "./rpc-policy.ts";

/** The arguments of {@link createPlantGatewayOptions}. */
export interface PlantGatewayParts {
  readonly store: PlantStore;
  readonly verifier: TokenVerifier;
  readonly readiness: Readiness;
  readonly log: Log;
  /** The RFC 9728 documents to which `WWW-Authenticate` challenges point. */
  readonly resourceMetadata?: BearerAuthOptions["resourceMetadata"];
}

const plantPartsNames: OptionNames<PlantGatewayParts> = {
  store: required,
  verifier: required,
  readiness: required,
  log: required,
  resourceMetadata: true,
};

/** The gateway options for the plant store. */
export type PlantGatewayOptions = Required<
  Pick<
    GatewayOptions,
    "routes" | "interceptors" | "admit" | "toError" | "nameOptions" | "rest" | "readMaxBytes" | "binaryOptions"
  >
>;

// Maximum size of a message, in bytes. Messages contain only an id or a name.
const maxMessageBytes = 64 * 1024;

/** The plant store's REST options. Errors are records, and a deletion gets status 204 without a body. */
export const restOptions: RestOptions = {
  errorRecord,
  emptyResponse: 204,
  // `unknownFields` applies to the RPC protocols. REST always refuses unknown query parameters, because no service is
  // `lenient`.
  json: { unknownFields: "reject", canonicalIntegers: true },
};

/**
 * Creates options for `createGateway`, to serve `PlantService` over gRPC, gRPC-Web, Connect and REST, with health
 * checks and server reflection. `createPlantServer` also uses these options.
 *
 * `routes` and `interceptors` work in any Connect server. `admit` performs the same checks as the credential
 * interceptor, but before the message is read, and also for paths without an RPC. `toError` hides internal errors that
 * are thrown outside the interceptors.
 */
export function createPlantGatewayOptions(parts: PlantGatewayParts): PlantGatewayOptions {
  refuseUnknownOptions(parts, plantPartsNames, "createPlantGatewayOptions");
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
        readMaxBytes: maxHealthRequestBytes,
      });
      const reflection = createReflectionService([PlantService, Health, ServerReflection, ServerReflectionV1Alpha]);
      router.service(ServerReflection, reflection).service(ServerReflectionV1Alpha, reflection);
    },
    interceptors: [createErrorInterceptor(toError), auth.interceptor],
    admit: auth.admit,
    toError,
    // Errors do not name gateway options, because no plant store setting changes the options.
    nameOptions: false,
    rest: restOptions,
    readMaxBytes: maxMessageBytes,
    // Unknown fields are never used, and a 2-byte unknown field would occupy 165 bytes until the call ends.
    binaryOptions: { readUnknownFields: false },
  };
}
