import type { ContextValues, Interceptor } from "@connectrpc/connect";
import type { TokenVerifier } from "@plantstore/auth";
import type { Log } from "@plantstore/telemetry/logs";
import type { AdmitRequest, CompletedRequest, Endpoint, GatewayOptions, Limits } from "@plantstore/gateway";
import { type OptionNames, required } from "@plantstore/http";
import type { PlantStore } from "../service/index.ts";
import type { Configuration } from "./settings.ts";

/** The settings that {@link createPlantServer} accepts as options, by their names in `Configuration`. */
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
  | "httpEngine"
  | "jwtIssuers"
  | "providerScopes"
  | "drainDelayMs"
  | "drainTimeoutMs"
>;

/** Options for {@link createPlantServer}: settings, which docs/reference/configuration.md describes, and parts. */
export interface PlantServerOptions extends Partial<SettingOptions> {
  /** The plant store. The caller opens it, and closes it after the server. */
  readonly store: PlantStore;
  /** The token verifier. Without one, every call is refused, and the server listens only on a loopback address. */
  readonly verifier?: TokenVerifier | undefined;
  /** Limits for connections, headers and timeouts that differ from the gateway's defaults. */
  readonly limits?: Partial<Limits> | undefined;
  /** The log for calls and errors. Default none. */
  readonly log?: Log | undefined;
  /**
   * The audit trail's log, with one line per refused credential and per deletion. Its level must include `info`.
   * Default `log`. Then there is no audit trail unless `log`'s level includes `info`.
   */
  readonly auditLog?: Log | undefined;
  /**
   * The deletion log. A separate log keeps them apart from refused credentials, with which any client can fill a log.
   * Default `auditLog`.
   */
  readonly deletionLog?: Log | undefined;
  /** Additional interceptors that run between the credential check and the service, for example for traces. */
  readonly interceptors?: readonly Interceptor[] | undefined;
  /**
   * Returns additional fields for a call's log line, from the call's context values, for example the trace id. If it
   * throws, the line contains the reason as `logFieldsProblem` instead.
   */
  readonly logFields?: ((contextValues: ContextValues) => object) | undefined;
  /** Serves the RPCs as tools for AI agents, such as `createPlantTools()`. Default none. */
  readonly tools?: GatewayOptions["mcp"] | undefined;
  /** Additional plain HTTP endpoints. They require a credential unless they are `open`. Default none. */
  readonly endpoints?: readonly Endpoint[] | undefined;
  /** Called with every request before its credential is checked, for example for traces. */
  readonly onRequest?: ((request: AdmitRequest) => void) | undefined;
  /** Called after every response, including those to refused requests and probes, for example for metrics. */
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
  httpEngine: true,
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
