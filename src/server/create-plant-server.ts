import { setTimeout as delay } from "node:timers/promises";
import type { SecureContextOptions } from "node:tls";
import { bearerAuth, subjectOf, type TokenVerifier } from "../auth/index.ts";
import { abortReasonOf, createGateway, type ListenOptions } from "../gateway/index.ts";
import { Health } from "../gen/es/grpc/health/v1/health_pb.ts";
import { ServerReflection } from "../gen/es/grpc/reflection/v1/reflection_pb.ts";
import { PlantService } from "../gen/es/plantstore/v1/plant_service_pb.ts";
import { bothListeners } from "../operations/answer-listener.ts";
import { callLog } from "../operations/call-log.ts";
import { type DescriptionEndpoint, docsPage } from "../operations/docs-page/docs-page.ts";
import { errorInterceptor } from "../operations/error-interceptor.ts";
import { createHealthService } from "../operations/health.ts";
import { silentLog } from "../operations/log.ts";
import { probes } from "../operations/probes.ts";
import { Readiness } from "../operations/readiness.ts";
import { createReflectionService } from "../operations/reflection.ts";
import { requestIdOf } from "../operations/request-id.ts";
import { createPlantService } from "../plants/index.ts";
import { auditOf, rememberPlantId } from "./audit.ts";
import { isLoopback } from "./loopback.ts";
import { describePlantStore } from "./open-api.ts";
import type { PlantDescriptionOptions, PlantServerOptions } from "./plant-server-options.ts";
import { errorRecord } from "./rest-policy.ts";

/** Where a server listens. */
export interface ListeningAddress {
  /** The IP address that the host stood for. */
  readonly address: string;
  readonly port: number;
}

/** A plant server: every protocol on one port. */
export interface PlantServer {
  /**
   * Starts to listen and resolves to where; 127.0.0.1 and a free port when `at` names none.
   *
   * @throws Error when the host is no loopback address and there is no verifier; the system's error
   * (`EADDRINUSE` and the like) when it cannot listen
   */
  listen(at: ListenOptions): Promise<ListeningAddress>;
  /** Takes a renewed certificate for new connections; those that are open live on. */
  setSecureContext(context: SecureContextOptions): void;
  /** Ends well: readiness off, serve on for the drain delay, stop accepting, finish what was taken. */
  drain(): Promise<void>;
  /** Ends at once; calls that are under way are cut. */
  close(): Promise<void>;
}

// 20 s, and with the 5 s of the drain delay below the 30 s after which Kubernetes kills.
const drainTimeoutMsDefault = 20_000;

// 64 KiB: messages here are an id or a name. Health may be asked without a credential, so that this, for as many
// streams as a connection may have, is what anybody can make the server hold.
const messageBytesMax = 64 * 1024;

/** What a token needs to delete, where tokens have scopes. */
export const deleteScope = "plants:delete";

/**
 * Creates the plant server out of its parts; the only place where plants, credentials, gateway and
 * operations meet.
 */
export function createPlantServer(options: PlantServerOptions): PlantServer {
  const { store, auth: verifier, resourceMetadata, requestPathPrefix = "", drainDelayMs = 0 } = options;
  const log = options.log ?? silentLog;
  const auth = bearerAuth(verifier ?? nobody, {
    realm: "plantstore",
    requiredScope,
    open: [Health.typeName],
    resourceMetadata: resourceMetadata?.url,
  });
  const readiness = new Readiness([
    { name: "store", problem: () => store.problem },
    { name: "credentials", problem: () => verifier?.problem },
  ]);
  const writeCall = callLog({ log, auditLog: options.auditLog, auditOf });
  const onAnswer = bothListeners(writeCall, options.onAnswer, log);
  // What only the log asks for is not worked out without it.
  const forLog = writeCall === undefined ? [] : [rememberPlantId];
  const gateway = createGateway({
    routes: (router) => {
      router.service(PlantService, createPlantService({ store, subjectOf, requestIdOf, abortReasonOf }));
      router.service(Health, createHealthService({ readiness, services: [PlantService.typeName] }));
      router.service(ServerReflection, createReflectionService([PlantService, Health, ServerReflection]));
    },
    // Outermost first: whatever the others throw is made safe to show.
    interceptors: [errorInterceptor({ log }), auth.interceptor, ...forLog, ...(options.interceptors ?? [])],
    admit: (request) => auth.admit(request),
    readMaxBytes: messageBytesMax,
    rest: { errorRecord, emptyResponse: 204, json: { unknownFields: "reject", canonicalIntegers: true } },
    endpoints: [
      ...probes(readiness),
      ...describe(options.description ?? {}, requestPathPrefix),
      ...(resourceMetadata === undefined ? [] : [resourceMetadata]),
    ],
    requestPathPrefix,
    ...(options.cors && { cors: options.cors }),
    ...(options.limits && { limits: options.limits }),
    ...(onAnswer && { onAnswer }),
  });
  return {
    listen: async (at) => {
      if (verifier === undefined) demandLoopback(at.host);
      return await gateway.listen(at);
    },
    setSecureContext: (context) => gateway.setSecureContext(context),
    drain: async () => {
      readiness.startDraining();
      if (drainDelayMs > 0) await delay(drainDelayMs);
      await gateway.drain(options.drainTimeoutMs ?? drainTimeoutMsDefault);
    },
    close: () => gateway.drain(0),
  };
}

function demandLoopback(host: string | undefined): void {
  if (host === undefined || isLoopback(host)) return;
  throw new Error(`${host} is no loopback address: without a verifier of credentials only those are listened on`);
}

function describe({ open = false, baseUrl }: PlantDescriptionOptions, prefix: string): DescriptionEndpoint[] {
  // A relative URL in `servers` is relative to where the document is, whatever host and port that has for the client.
  const document = (): string => JSON.stringify(describePlantStore(baseUrl ?? (prefix === "" ? "/" : prefix)));
  return docsPage({ document, open });
}

function requiredScope(procedure: string): string | undefined {
  return procedure === `/${PlantService.typeName}/${PlantService.method.deletePlant.name}` ? deleteScope : undefined;
}

const nobody: TokenVerifier = {
  verify: () => ({ kind: "unknown", reason: "no verifier is configured" }),
};
