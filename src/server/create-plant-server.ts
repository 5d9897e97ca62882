import type { SecureContextOptions } from "node:tls";
import { type ContextKey, createContextKey, type Interceptor } from "@connectrpc/connect";
import {
  createResourceMetadata,
  credentialRefusalOf,
  limitRates,
  principalKey,
  type ResourceMetadata,
  type TokenVerifier,
} from "@protoport/auth";
import { isLoopback } from "@protoport/auth/inputs";
import { createDocsPage } from "@protoport/docs-page";
import {
  type BoundAddress,
  type CompletedRequest,
  createGateway,
  type Endpoint,
  type Gateway,
  type GatewayLoad,
  type GatewayOptions,
  type ListenOptions,
  type TrustedProxiesOptions,
} from "@protoport/gateway";
import {
  createProbes,
  drainGracefully,
  drainTimesDefault,
  isProbe,
  Readiness,
  type ServerPart,
} from "@protoport/gateway/health";
import { refusePromise, refuseUnknownOptions } from "@protoport/gateway/options";
import {
  type AuditedCall,
  type CallAudit,
  createCallLog,
  createRequestIds,
  type Log,
  logReadiness,
  silentLog,
} from "@protoport/telemetry/logs";
import { PlantService } from "../gen/es/plantstore/v1/plant_service_pb.ts";
import {
  createPlantGatewayOptions,
  idempotencyKeyField,
  plantScopes,
  type PlantStore,
  policyOf,
  storeProblemOf,
} from "../service/index.ts";
import { plantServerOptionNames, type PlantServerOptions } from "./plant-server-options.ts";
import { createPlantStoreOpenApi } from "./plant-store-open-api.ts";

/** A plant server, which serves all protocols on one port. */
export interface PlantServer {
  /**
   * Starts listening and resolves to the address. The default is a free port on 127.0.0.1.
   *
   * @throws Error if there is no verifier and the host is not a loopback address
   * @throws a system error, such as `EADDRINUSE`, if listening fails
   */
  listen(at: ListenOptions): Promise<BoundAddress>;
  /** The current numbers of connections and requests. All numbers are 0 before {@link listen}. */
  readonly load: GatewayLoad;
  /** Whether the server accepts calls. `/readyz` reports this state. */
  readonly readiness: Pick<Readiness, "draining" | "obstacles" | "problems">;
  /** Uses a renewed certificate for new connections. Existing connections stay open. */
  setSecureContext(context: SecureContextOptions): void;
  /**
   * Shuts down gracefully. Turns readiness off, keeps serving for the drain delay, stops accepting connections, and
   * waits for running calls.
   */
  drain(): Promise<void>;
  /** Shuts down immediately and aborts running calls. */
  close(): Promise<void>;
}

/**
 * Creates a plant server.
 *
 * @throws TypeError for unknown options
 */
export function createPlantServer(options: PlantServerOptions): PlantServer {
  refuseUnknownOptions(options, plantServerOptionNames, "createPlantServer");
  return assemblePlantServer(options);
}

/**
 * Creates a plant server. The options may have more properties, for example from a {@link Configuration}.
 *
 * @param create - creates the gateway. Tests pass a function whose gateway listens on another server
 */
export function assemblePlantServer(
  options: PlantServerOptions,
  create: (options: GatewayOptions) => Gateway = createGateway,
): PlantServer {
  const { store, verifier, drainDelayMs = 0, drainTimeoutMs = drainTimesDefault.timeoutMs } = options;
  const log = options.log ?? silentLog;
  const readiness = new Readiness({ ...serverPartsOf(store), credentials: verifier ?? {} });
  const endpoints = endpointsOf(options, readiness);
  const resource = resourceOf(options, endpoints);
  const plants = createPlantGatewayOptions({
    store,
    verifier: verifier ?? rejectAll,
    readiness,
    log,
    resourceMetadata: resource,
  });
  const hooks = createHooks(options, log);
  const gateway = create({
    ...plants,
    ...hooks,
    interceptors: [...plants.interceptors, ...hooks.interceptors],
    admit: limitRates(plants.admit, {
      perPrincipal: options.ratePerPrincipal,
      perAddress: options.ratePerAddress,
    }),
    endpoints: [...endpoints, ...(resource?.endpoints ?? [])],
    ...locationOptions(options),
    ...(options.tools && { mcp: options.tools }),
    onFault: (err, what, request, errorCode) => {
      log.error({ errorCode, requestId: request?.requestId, procedure: request?.procedure, err }, what);
    },
  });
  let stopReadinessLog: (() => void) | undefined;
  return {
    listen: async (at) => {
      if (verifier === undefined) requireLoopback(at.host);
      const address = await gateway.listen({ proxyProtocol: options.proxyProtocol === "on", ...at });
      stopReadinessLog ??= logReadiness(readiness, log);
      return address;
    },
    get load() {
      return gateway.load;
    },
    readiness,
    setSecureContext: (context) => gateway.setSecureContext(context),
    drain: async () => {
      stopReadinessLog?.();
      await drainGracefully(gateway, readiness, { delayMs: drainDelayMs, timeoutMs: drainTimeoutMs });
    },
    close: () => {
      stopReadinessLog?.();
      return gateway.drain(0);
    },
  };
}

// Returns a store's two readiness components. The check after a crash is separate, because a check is not a problem.
function serverPartsOf(store: PlantStore): Readonly<Record<"store" | "store-check", ServerPart>> {
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

/** The request header fields that MCP's "Streamable HTTP" transport uses. */
const toolFields = ["MCP-Protocol-Version", "Mcp-Method", "Mcp-Name"];

/** Returns the hooks that the gateway calls during a request. */
function createHooks(
  options: PlantServerOptions,
  log: Log,
): Pick<GatewayOptions, "onRequest" | "onError" | "onResponse" | "cors"> &
  Required<Pick<GatewayOptions, "interceptors">> {
  const { corsOrigins } = options;
  const requestIds = createRequestIds(options.requestIdResponses ?? "requested");
  const writeCall = createPlantCallLog(options, log);
  const onResponse = writeCall === undefined ? options.onResponse : callBoth(writeCall, options.onResponse);
  // Stores plant ids only with a log, because only the log uses plant ids.
  const logInterceptors = writeCall === undefined ? [] : [rememberPlantId];
  const allowedHeaders = [idempotencyKeyField, ...(options.tools === undefined ? [] : toolFields)];
  const exposedHeaders = [requestIds.fieldName, "RateLimit", "RateLimit-Policy"];
  return {
    interceptors: [...logInterceptors, ...(options.interceptors ?? [])],
    onRequest: callBoth(requestIds.onRequest, options.onRequest),
    onError: requestIds.onError,
    ...(onResponse && { onResponse }),
    ...(corsOrigins && { cors: { origins: corsOrigins, allowedHeaders, exposedHeaders } }),
  };
}

// The RFC 9728 documents for the base URL, the tools, and each endpoint that requires a credential. Undefined without a
// public URL.
function resourceOf(
  { publicUrl, jwtIssuers, providerScopes, tools }: PlantServerOptions,
  endpoints: readonly Endpoint[],
): ResourceMetadata | undefined {
  if (publicUrl === undefined) return undefined;
  const closed = endpoints.filter(({ open, atRoot }) => !open && atRoot !== true);
  return createResourceMetadata({
    name: "Plant Store",
    publicUrl,
    issuers: jwtIssuers ?? [],
    scopes: providerScopes === "enforced" ? plantScopes : [],
    paths: [...closed, ...(tools === undefined ? [] : [tools])].map(({ path }) => path),
  });
}

/** Returns the endpoints below the server's base URL. */
function endpointsOf(options: PlantServerOptions, readiness: Readiness): readonly Endpoint[] {
  const { publicUrl } = options;
  // `servers` contains a URL that is relative to the document, because clients may use any host and port.
  const baseUrl = publicUrl === undefined ? "/" : withoutSlash(publicUrl.href);
  const document = (): string => JSON.stringify(createPlantStoreOpenApi(baseUrl, options.tools));
  return [
    ...createProbes(readiness),
    ...createDocsPage({ document, open: options.docs === "open" }),
    ...(options.endpoints ?? []),
  ];
}

/** Returns the gateway options for the path prefix, trusted proxies and limits. */
function locationOptions(
  options: PlantServerOptions,
): Pick<GatewayOptions, "requestPathPrefix" | "trustedProxies" | "limits"> {
  const { limits } = options;
  return {
    requestPathPrefix: prefixOf(options),
    ...(options.trustedProxies && { trustedProxies: trustedProxiesOf(options, options.trustedProxies) }),
    ...(limits && { limits }),
  };
}

/** Returns the prefix for all paths, which is the path in the public URL. */
function prefixOf({ publicUrl }: PlantServerOptions): string {
  return publicUrl === undefined ? "" : withoutSlash(publicUrl.pathname);
}

function withoutSlash(text: string): string {
  return text.replace(/\/+$/, "");
}

// The trusted proxies, and the header fields in which they send the client's address. With the PROXY protocol, address
// fields come from the client, and are ignored unless the operator configures them.
function trustedProxiesOf(
  { proxyProtocol, proxyFields }: PlantServerOptions,
  addresses: readonly string[],
): TrustedProxiesOptions {
  return { addresses, fields: proxyFields ?? (proxyProtocol === "on" ? "none" : "x-forwarded") };
}

function createPlantCallLog(options: PlantServerOptions, log: Log): ReturnType<typeof createCallLog> {
  const { auditLog, deletionLog, logFields } = options;
  const auditWith = logFields === undefined ? auditOf : withFields(auditOf, logFields);
  const prefix = prefixOf(options);
  const isSilent = options.logProbes === "off" ? (call: CompletedRequest) => isProbe(call, prefix) : undefined;
  return createCallLog({ log, auditLog, deletionLog, auditOf: auditWith, isSilent });
}

function withFields(audit: typeof auditOf, logFields: NonNullable<PlantServerOptions["logFields"]>): typeof auditOf {
  return (call) => {
    const { trail, fields } = audit(call);
    return { trail, fields: { ...fields, ...readLogFields(logFields, call.contextValues) } };
  };
}

// If the callback fails, returns the reason as a field, because the audit line must be written in any case.
function readLogFields(
  logFields: NonNullable<PlantServerOptions["logFields"]>,
  contextValues: AuditedCall["contextValues"],
): object {
  try {
    return refusePromise(logFields(contextValues), "logFields must be synchronous");
  } catch (error) {
    return { logFieldsProblem: error instanceof Error ? error.message : String(error) };
  }
}

function requireLoopback(host: string | undefined): void {
  if (host === undefined || isLoopback(host)) return;
  throw new Error(`refusing to listen on ${host}: pass a verifier of credentials, or listen on 127.0.0.1 or ::1`);
}

/** Returns a callback that calls two callbacks. If both callbacks fail, throws the first error. */
function callBoth<T>(first: (value: T) => void, second: ((value: T) => void) | undefined): (value: T) => void {
  if (second === undefined) return first;
  return (value) => {
    try {
      first(value);
    } catch (reason) {
      // Metrics must count the call even if the log has failed. The promise executor converts a thrown error to a
      // rejection, and `catch` ignores the rejection.
      void new Promise<void>((resolve) => resolve(second(value))).catch(() => undefined);
      throw reason;
    }
    // Returns the result, so that the gateway handles the rejection of an async callback.
    return second(value);
  };
}

/** The verifier for a server without a configured verifier. */
const rejectAll: TokenVerifier = { verify: () => ({ kind: "unknown", reason: "no verifier is configured" }) };

const plantIdKey: ContextKey<bigint | undefined> = createContextKey<bigint | undefined>(undefined);

/**
 * Stores the requested plant's id for {@link auditOf}. `auditOf` cannot read the id from the path, because only REST
 * has the id in the path. In every request to the service, the field `id` is the plant's id.
 */
export const rememberPlantId: Interceptor = (next) => (request) => {
  if (!request.stream && request.service === PlantService && "id" in request.message) {
    const { id } = request.message;
    if (typeof id === "bigint") request.contextValues.set(plantIdKey, id);
  }
  return next(request);
};

/**
 * Returns the audit trail for a call, and the fields in the call's log line. The fields are the caller, the reason for
 * a refused credential, the store's problem, and the plant's id. Only a call with a refused credential or a deletion
 * with a plant's id has an audit trail.
 */
export function auditOf({ procedure, contextValues, error }: AuditedCall): CallAudit {
  const plantId = contextValues.get(plantIdKey);
  const principal = contextValues.get(principalKey);
  const refusal = credentialRefusalOf(error);
  const problem = storeProblemOf(error);
  const fields = {
    ...(principal !== undefined && { subject: principal.subject }),
    ...(principal?.issuer !== undefined && { issuer: principal.issuer }),
    ...(refusal !== undefined && { refusal: refusal.kind, reason: refusal.reason }),
    ...(problem !== undefined && { problem }),
  };
  if (plantId === undefined) return { trail: refusal && "refusals", fields };
  const effect = procedure === undefined ? undefined : policyOf(procedure)?.effect;
  // The id is a string, because a large JSON number loses digits.
  return { trail: effect === "deletion" ? "deletions" : undefined, fields: { ...fields, plantId: String(plantId) } };
}
