import type { SecureContextOptions } from "node:tls";
import { createResourceMetadata, type ResourceMetadata, type TokenVerifier } from "@plantstore/auth";
import {
  type AnsweredRequest,
  type BoundAddress,
  createGateway,
  type GatewayLoad,
  type GatewayOptions,
  type ListenOptions,
  type TrustedProxiesOptions,
} from "@plantstore/gateway";
import { refusePromise, refuseUnknownOptions } from "@plantstore/gateway/options";
import { createDocsPage } from "@plantstore/docs-page";
import {
  createProbes,
  drainGracefully,
  drainTimesDefault,
  isProbe,
  Readiness,
  type ServerPart,
} from "@plantstore/gateway/health";
import {
  type AuditedCall,
  createCallLog,
  createRequestIds,
  type Log,
  logReadiness,
  silentLog,
} from "@plantstore/telemetry/logs";
import { idempotencyKeyField, type PlantStore, plantScopes, servePlants } from "../service/index.ts";
import { auditOf, rememberPlantId } from "./audit.ts";
import { limitRates } from "./limit-rates.ts";
import { isLoopback } from "@plantstore/auth/inputs";
import { describePlantStore } from "./describe-plant-store.ts";
import { httpEngineOf } from "./http-engine.ts";
import { plantServerOptionNames, type PlantServerOptions } from "./plant-server-options.ts";

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
   * Shuts down gracefully: turns readiness off, keeps serving for the drain delay, stops accepting, finishes running
   * calls.
   */
  drain(): Promise<void>;
  /** Shuts down at once and aborts running calls. */
  close(): Promise<void>;
}

/**
 * Creates the plant server from its parts.
 *
 * @throws TypeError for options that do not exist, and for an `httpEngine` that does not
 */
export function createPlantServer(options: PlantServerOptions): PlantServer {
  refuseUnknownOptions(options, plantServerOptionNames, "createPlantServer");
  return assemblePlantServer(options);
}

/**
 * Creates the plant server of options that may be a whole {@link Configuration}; the only place where plants,
 * credentials, gateway and operations meet.
 */
export function assemblePlantServer(options: PlantServerOptions): PlantServer {
  const { store, auth: verifier, drainDelayMs = 0, drainTimeoutMs = drainTimesDefault.timeoutMs } = options;
  const log = options.log ?? silentLog;
  const readiness = new Readiness({ ...partsOf(store), credentials: verifier ?? {} });
  const resource = resourceOf(options);
  const plants = servePlants({
    store,
    verifier: verifier ?? rejectAll,
    readiness,
    log,
    resourceMetadata: resource?.url,
  });
  const hooks = createHooks(options, log);
  const gateway = createGateway({
    ...plants,
    ...hooks,
    interceptors: [...plants.interceptors, ...hooks.interceptors],
    admit: limitRates(plants.admit, options),
    ...placeServer(options, readiness, resource),
    ...httpEngineOf(options.httpEngine),
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
    drain: async () => {
      endReadinessLog?.();
      await drainGracefully(gateway, readiness, { delayMs: drainDelayMs, timeoutMs: drainTimeoutMs });
    },
    close: () => {
      endReadinessLog?.();
      return gateway.drain(0);
    },
  };
}

/** Returns a store as probes see it: a check after a crash has a name of its own, because it ends by itself. */
function partsOf(store: PlantStore): Readonly<Record<"store" | "store-check", ServerPart>> {
  return {
    store: {
      get problem() {
        return store.isChecking === true ? undefined : store.problem;
      },
    },
    "store-check": {
      get problem() {
        return store.isChecking === true ? store.problem : undefined;
      },
    },
  };
}

/** What the gateway calls on the way of a request. */
function createHooks(
  options: PlantServerOptions,
  log: Log,
): Pick<GatewayOptions, "onRequest" | "onError" | "onAnswer" | "cors"> &
  Required<Pick<GatewayOptions, "interceptors">> {
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

/** Returns the RFC 9728 document of the server; `undefined` if its public URL is not known. */
function resourceOf({ publicUrl, jwtIssuers, providerScopes }: PlantServerOptions): ResourceMetadata | undefined {
  if (publicUrl === undefined) return undefined;
  return createResourceMetadata({
    name: "Plant Store",
    publicUrl,
    issuers: jwtIssuers ?? [],
    scopes: providerScopes === "demanded" ? plantScopes : [],
  });
}

/** Where the server is: its base URL, what is served below it, and behind which proxies. */
function placeServer(
  options: PlantServerOptions,
  readiness: Readiness,
  resource: ResourceMetadata | undefined,
): Pick<GatewayOptions, "endpoints" | "requestPathPrefix" | "trustedProxies" | "limits"> {
  const { publicUrl, limits } = options;
  // A relative URL in `servers` is relative to the location of the document, whatever host and port the client sees.
  const baseUrl = publicUrl === undefined ? "/" : withoutSlash(publicUrl.href);
  const document = (): string => JSON.stringify(describePlantStore(baseUrl));
  return {
    endpoints: [
      ...createProbes(readiness),
      ...createDocsPage({ document, open: options.docs === "open" }),
      ...(resource === undefined ? [] : [resource]),
      ...(options.endpoints ?? []),
    ],
    requestPathPrefix: prefixOf(options),
    ...(options.trustedProxies && { trustedProxies: trustedProxiesOf(options, options.trustedProxies) }),
    ...(limits && { limits }),
  };
}

/** Returns the path below which everything is served. */
function prefixOf({ publicUrl }: PlantServerOptions): string {
  return publicUrl === undefined ? "" : withoutSlash(publicUrl.pathname);
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

function createLogOfCalls(options: PlantServerOptions, log: Log): ReturnType<typeof createCallLog> {
  const { auditLog, deletionLog, logFields } = options;
  const auditWith = logFields === undefined ? auditOf : withFields(auditOf, logFields);
  const prefix = prefixOf(options);
  const isSilent = options.probeLines === "off" ? (call: AnsweredRequest) => isProbe(call, prefix) : undefined;
  return createCallLog({ log, auditLog, deletionLog, auditOf: auditWith, isSilent });
}

function withFields(audit: typeof auditOf, logFields: NonNullable<PlantServerOptions["logFields"]>): typeof auditOf {
  return (call) => {
    const { trail, fields } = audit(call);
    return { trail, fields: { ...fields, ...readLogFields(logFields, call.contextValues) } };
  };
}

/** Returns the fields of the program, or why there are none: a line of the audit trail is written in any case. */
function readLogFields(
  logFields: NonNullable<PlantServerOptions["logFields"]>,
  contextValues: AuditedCall["contextValues"],
): object {
  try {
    return refusePromise(logFields(contextValues), "logFields must return its result");
  } catch (error) {
    return { logFieldsProblem: error instanceof Error ? error.message : String(error) };
  }
}

function demandLoopback(host: string | undefined): void {
  if (host === undefined || isLoopback(host)) return;
  throw new Error(`refusing to listen on ${host}: pass a verifier of credentials, or listen on 127.0.0.1 or ::1`);
}

/** Returns a callback that calls both of these; if both fail, with the error of the first. */
function bothOf<T>(first: (value: T) => void, second: ((value: T) => void) | undefined): (value: T) => void {
  if (second === undefined) return first;
  return (value) => {
    try {
      first(value);
    } catch (reason) {
      // Metrics count calls whose log has failed. A throw in an executor rejects, too.
      void new Promise<void>((resolve) => resolve(second(value))).catch(() => undefined);
      throw reason;
    }
    // Returned, so that the gateway sees it when an async callback rejects.
    return second(value);
  };
}

/** Stands in for a verifier that is not configured. */
const rejectAll: TokenVerifier = { verify: () => ({ kind: "unknown", reason: "no verifier is configured" }) };
