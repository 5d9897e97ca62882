import { setTimeout as delay } from "node:timers/promises";
import type { SecureContextOptions } from "node:tls";
import { createBearerAuth, createResourceMetadata, principalKey, type TokenVerifier } from "@plantstore/operators/auth";
import {
  type Admit,
  type BoundAddress,
  createGateway,
  type GatewayLoad,
  type GatewayOptions,
  idempotencyFieldKey,
  type ListenOptions,
  type TrustedProxiesOptions,
} from "@plantstore/gateway";
import { createDocsPage } from "@plantstore/gateway/docs-page";
import {
  createHealthService,
  createProbes,
  Health,
  healthRequestBytesMax,
  isProbe,
  Readiness,
} from "@plantstore/gateway/health";
import { createReflectionService, ServerReflection, ServerReflectionV1Alpha } from "@plantstore/gateway/reflection";
import { PlantService } from "../gen/es/plantstore/v1/plant_service_pb.ts";
import {
  createCallLog,
  createRequestIds,
  createSafeErrors,
  type Log,
  logReadiness,
  requestIdKey,
  silentLog,
} from "@plantstore/operators/operations";
import { createPlantService, idempotencyKeyField } from "../plants/index.ts";
import { auditOf, rememberPlantId } from "./audit.ts";
import { limitRates } from "./limit-rates.ts";
import { isLoopback } from "@plantstore/operators/inputs";
import { describePlantStore } from "./describe-plant-store.ts";
import type { PlantServerOptions } from "./plant-server-options.ts";
import { restOptions } from "./rest-policy.ts";
import { plantScopes, policyOf } from "./rpc-policy.ts";

/** A plant server: all protocols on one port. */
export interface PlantServer {
  /**
   * Starts to listen and resolves to the address; by default 127.0.0.1 and a free port.
   *
   * @throws Error when the host is not a loopback address and there is no verifier; the error of the system
   * (`EADDRINUSE` and the like) when it cannot listen
   */
  listen(at: ListenOptions): Promise<BoundAddress>;
  /** What its port carries at the moment; zeros before {@link listen}. */
  readonly load: GatewayLoad;
  /** Whether calls should be sent here, as `/readyz` says. */
  readonly readiness: Pick<Readiness, "draining" | "obstacles">;
  /** Uses a renewed certificate for new connections; existing ones stay open. */
  setSecureContext(context: SecureContextOptions): void;
  /**
   * Shuts down gracefully: turns readiness off, keeps serving for the drain delay unless it is `replaced`, stops
   * accepting, finishes running calls.
   */
  drain(options?: DrainOptions): Promise<void>;
  /** Shuts down at once and aborts running calls. */
  close(): Promise<void>;
}

/** Options of {@link PlantServer.drain}. */
export interface DrainOptions {
  /** Whether another process already serves at the same address, so that no balancer need notice. Default false. */
  readonly replaced?: boolean;
}

// 20 s: together with the usual drain delay of 5 s, less than the 30 s after which Kubernetes kills a container.
const drainTimeoutMsDefault = 20_000;

// 64 KiB: messages here are an id or a name.
const messageBytesMax = 64 * 1024;

/** Creates the plant server from its parts; the only place where plants, credentials, gateway and operations meet. */
export function createPlantServer(options: PlantServerOptions): PlantServer {
  const { store, auth: verifier, drainDelayMs = 0, drainTimeoutMs = drainTimeoutMsDefault } = options;
  const log = options.log ?? silentLog;
  const readiness = new Readiness({ store, credentials: verifier ?? {} });
  const gateway = createGateway({
    routes: (router) => {
      router.service(PlantService, createPlantService({ store, principalKey, requestIdKey, idempotencyFieldKey }));
      router.service(Health, createHealthService({ readiness, services: [PlantService.typeName] }), {
        readMaxBytes: healthRequestBytesMax,
      });
      const reflection = createReflectionService([PlantService, Health, ServerReflection, ServerReflectionV1Alpha]);
      router.service(ServerReflection, reflection).service(ServerReflectionV1Alpha, reflection);
    },
    toError: createSafeErrors({ log }),
    readMaxBytes: messageBytesMax,
    // Nobody reads them here, and one of two bytes would take 165 for as long as its call lasts.
    binaryOptions: { readUnknownFields: false },
    rest: restOptions,
    ...createHooks(options, log),
    ...placeServer(options, readiness),
    onFault: (err, what, request, errorCode) => {
      log.error({ errorCode, requestId: request?.requestId, procedure: request?.procedure, err }, what);
    },
  });
  let endReadinessLog: (() => void) | undefined;
  return {
    listen: async (at) => {
      if (verifier === undefined) demandLoopback(at.host);
      const address = await gateway.listen({ proxyProtocol: options.proxyProtocol === "on", ...at });
      endReadinessLog ??= logReadiness(readiness, log);
      return address;
    },
    get load() {
      return gateway.load;
    },
    readiness,
    setSecureContext: (context) => gateway.setSecureContext(context),
    drain: async ({ replaced = false } = {}) => {
      endReadinessLog?.();
      readiness.startDraining();
      if (!replaced && drainDelayMs > 0) await delay(drainDelayMs);
      await gateway.drain(drainTimeoutMs);
    },
    close: () => {
      endReadinessLog?.();
      return gateway.drain(0);
    },
  };
}

/** What the gateway calls on the way of a request. */
function createHooks(
  options: PlantServerOptions,
  log: Log,
): Pick<GatewayOptions, "interceptors" | "onRequest" | "onError" | "onAnswer" | "cors"> {
  const { corsOrigins } = options;
  const requestIds = createRequestIds(options.requestIdAnswers ?? "asked");
  const writeCall = createLogOfCalls(options, log);
  const onAnswer = writeCall === undefined ? options.onAnswer : bothOf(writeCall, options.onAnswer);
  // Only the log needs the ids of plants.
  const forLog = writeCall === undefined ? [] : [rememberPlantId];
  const exposedHeaders = [requestIds.fieldName, "RateLimit", "RateLimit-Policy"];
  return {
    interceptors: [...forLog, ...(options.interceptors ?? [])],
    onRequest: bothOf(requestIds.onRequest, options.onRequest),
    onError: requestIds.onError,
    ...(onAnswer && { onAnswer }),
    ...(corsOrigins && { cors: { origins: corsOrigins, allowedHeaders: [idempotencyKeyField], exposedHeaders } }),
  };
}

/** Where the server stands: its base URL, what is served below it, behind which proxies, and for whom. */
function placeServer(
  options: PlantServerOptions,
  readiness: Readiness,
): Pick<GatewayOptions, "admit" | "endpoints" | "requestPathPrefix" | "trustedProxies" | "limits"> {
  const { publicUrl, jwtIssuers, providerScopes, limits } = options;
  const resource =
    publicUrl &&
    createResourceMetadata({
      name: "Plant Store",
      publicUrl,
      issuers: jwtIssuers ?? [],
      scopes: providerScopes === "demanded" ? plantScopes : [],
    });
  // A relative URL in `servers` is relative to the location of the document, whatever host and port the client sees.
  const baseUrl = publicUrl === undefined ? "/" : withoutSlash(publicUrl.href);
  const document = (): string => JSON.stringify(describePlantStore(baseUrl));
  return {
    admit: createAdmit(options, resource?.url),
    endpoints: [
      ...createProbes(readiness),
      ...createDocsPage({ document, open: options.docs === "open" }),
      ...(resource === undefined ? [] : [resource]),
      ...(options.endpoints ?? []),
    ],
    requestPathPrefix: publicUrl === undefined ? "" : withoutSlash(publicUrl.pathname),
    ...(options.trustedProxies && { trustedProxies: trustedProxiesOf(options, options.trustedProxies) }),
    ...(limits && { limits }),
  };
}

function withoutSlash(text: string): string {
  return text.replace(/\/+$/, "");
}

/**
 * Returns the trusted proxies and the fields in which they name their client. A proxy that speaks the PROXY protocol
 * writes no fields: any are the client's own, unless the operator knows better.
 */
function trustedProxiesOf(
  { proxyProtocol, proxyFields }: PlantServerOptions,
  addresses: readonly string[],
): TrustedProxiesOptions {
  return { addresses, fields: proxyFields ?? (proxyProtocol === "on" ? "none" : "x-forwarded") };
}

function createAdmit(options: PlantServerOptions, resourceMetadata: string | undefined): Admit {
  const admit = createBearerAuth(options.auth ?? nobody, {
    realm: "plantstore",
    requiredScope: (procedure) => policyOf(procedure)?.scope,
    open: [Health.typeName],
    resourceMetadata,
  });
  return limitRates(admit, options);
}

function createLogOfCalls(options: PlantServerOptions, log: Log): ReturnType<typeof createCallLog> {
  const { auditLog, deletionLog, logFields } = options;
  const auditWith = logFields === undefined ? auditOf : withFields(auditOf, logFields);
  const isSilent = options.probeLines === "off" ? isProbe : undefined;
  return createCallLog({ log, auditLog, deletionLog, auditOf: auditWith, isSilent });
}

function withFields(audit: typeof auditOf, logFields: NonNullable<PlantServerOptions["logFields"]>): typeof auditOf {
  return (contextValues, error) => {
    const { trail, fields } = audit(contextValues, error);
    return { trail, fields: { ...fields, ...logFields(contextValues) } };
  };
}

function demandLoopback(host: string | undefined): void {
  if (host === undefined || isLoopback(host)) return;
  throw new Error(`${host} is no loopback address: without a verifier of credentials only those are listened on`);
}

/** Returns a callback that calls both of these. */
function bothOf<T>(first: (value: T) => void, second: ((value: T) => void) | undefined): (value: T) => void {
  if (second === undefined) return first;
  return (value) => {
    first(value);
    // Returned, so that the gateway sees it when an async callback rejects.
    return second(value);
  };
}

const nobody: TokenVerifier = { verify: () => ({ kind: "unknown", reason: "no verifier is configured" }) };
