import type { ContextValues, Interceptor } from "@connectrpc/connect";
import type { TokenVerifier } from "@protoport/auth";
import type { Log } from "@protoport/telemetry/logs";
import type { AdmitRequest, CompletedRequest, Endpoint, GatewayOptions, Limits } from "@protoport/gateway";
import { type OptionNames, required } from "@protoport/gateway/options";
import type { PlantStore } from "../service/index.ts";
import type { Configuration } from "./settings.ts";

/** The settings that {@link createPlantServer} accepts as options. The names are the names in `Configuration`. */
type SettingOptions = Pick<
  Configuration,
  | "publicUrl"
  | "docs"
  | "corsOrigins"
  | "trustedProxies"
  | "proxyFields"
  | "proxyProtocol"
  | "ratePerPrincipal"
  | "ratePerAddress"
  | "requestIdResponses"
  | "logProbes"
  | "jwtIssuers"
  | "providerScopes"
  | "drainDelayMs"
  | "drainTimeoutMs"
>;

/** Options for {@link createPlantServer}. docs/reference/configuration.md describes the settings among the options. */
export interface PlantServerOptions extends Partial<SettingOptions> {
  /** The plant store. The caller opens the store, and closes the store after the server. */
  readonly store: PlantStore;
  /** The token verifier. Without a verifier, the server refuses every call, and listens only on a loopback address. */
  readonly verifier?: TokenVerifier | undefined;
  /** Limits for connections, headers and timeouts. Missing limits have the gateway's defaults. */
  readonly limits?: Partial<Limits> | undefined;
  /** The log for calls and errors. By default, nothing is logged. */
  readonly log?: Log | undefined;
  /**
   * The log for the audit trail, with one line per refused credential and per deletion. The log's level must include
   * `info`. Default `log`. If the level of `log` does not include `info`, there is no audit trail.
   */
  readonly auditLog?: Log | undefined;
  /**
   * The log for deletions. Set if deletions need a separate log, because any client can fill a log with refused
   * credentials. Default `auditLog`.
   */
  readonly deletionLog?: Log | undefined;
  /** Additional interceptors that run between the credential check and the service, for example for traces. */
  readonly interceptors?: readonly Interceptor[] | undefined;
  /**
   * Returns additional fields for a call's log line, such as the trace id, from the call's context values. If the
   * function throws, the line instead contains the reason as `logFieldsProblem`.
   */
  readonly logFields?: ((contextValues: ContextValues) => object) | undefined;
  /** The protocol that serves the RPCs as tools for AI agents, such as `createPlantTools()`. Default none. */
  readonly tools?: GatewayOptions["mcp"] | undefined;
  /** Additional plain HTTP endpoints. An endpoint requires a credential unless it is `open`. Default none. */
  readonly endpoints?: readonly Endpoint[] | undefined;
  /** Called for every request, before the credential check, for example for traces. */
  readonly onRequest?: ((request: AdmitRequest) => void) | undefined;
  /** Called after every response, for example for metrics. Includes responses to refused requests and probes. */
  readonly onResponse?: ((request: CompletedRequest) => void) | undefined;
}

/** The option names in {@link PlantServerOptions}. */
export const plantServerOptionNames: OptionNames<PlantServerOptions> = {
  publicUrl: true,
  docs: true,
  corsOrigins: true,
  trustedProxies: true,
  proxyFields: true,
  proxyProtocol: true,
  ratePerPrincipal: true,
  ratePerAddress: true,
  requestIdResponses: true,
  logProbes: true,
  jwtIssuers: true,
  providerScopes: true,
  drainDelayMs: true,
  drainTimeoutMs: true,
  store: required,
  verifier: true,
  limits: true,
  log: true,
  auditLog: true,
  deletionLog: true,
  interceptors: true,
  logFields: true,
  tools: true,
  endpoints: true,
  onRequest: true,
  onResponse: true,
};
