import type { ContextValues, Interceptor } from "@connectrpc/connect";
import type { TokenVerifier } from "@plantstore/auth";
import type { Log } from "@plantstore/telemetry/logs";
import type { AdmitRequest, AnsweredRequest, Endpoint, Limits } from "@plantstore/gateway";
import { type OptionNames, required } from "@plantstore/gateway/options";
import type { PlantStore } from "../service/index.ts";
import type { Configuration } from "./settings.ts";

/** The settings that a program may give to {@link createPlantServer}, by the names that they have in `Configuration`. */
type GivenSettings = Pick<
  Configuration,
  | "publicUrl"
  | "docs"
  | "corsOrigins"
  | "trustedProxies"
  | "proxyFields"
  | "proxyProtocol"
  | "ratePerPrincipal"
  | "ratePerAddress"
  | "requestIdAnswers"
  | "probeLines"
  | "httpEngine"
  | "jwtIssuers"
  | "providerScopes"
  | "drainDelayMs"
  | "drainTimeoutMs"
>;

/** Options of {@link createPlantServer}: settings, as docs/reference/configuration.md describes them, and parts. */
export interface PlantServerOptions extends Partial<GivenSettings> {
  /** The store of the plants. The caller opens it, and closes it after the server. */
  readonly store: PlantStore;
  /** The verifier of tokens. Without one, every call is refused, and only a loopback address may be listened on. */
  readonly auth?: TokenVerifier | undefined;
  /** Bounds on connections, headers and waits that differ from the defaults of the gateway. */
  readonly limits?: Partial<Limits> | undefined;
  /** The log of calls and faults. Default none. */
  readonly log?: Log | undefined;
  /**
   * The log of the audit trail, one line per refused credential and per deletion; its level must let `info` through.
   * By default `log`, if its level lets these lines through.
   */
  readonly auditLog?: Log | undefined;
  /**
   * The log of deletions, to keep them apart from refusals, with which anyone can fill a log. Default `auditLog`.
   */
  readonly deletionLog?: Log | undefined;
  /** Additional interceptors between the credential check and the service: traces, for example. */
  readonly interceptors?: readonly Interceptor[] | undefined;
  /**
   * Returns further fields for the line of a call in the log, by its context values: its trace, for example. If it throws,
   * the line has the reason as `logFieldsProblem` instead.
   */
  readonly logFields?: ((contextValues: ContextValues) => object) | undefined;
  /** Further plain HTTP resources, besides those of the server. They need a credential unless `open`. Default none. */
  readonly endpoints?: readonly Endpoint[] | undefined;
  /** Called with every request before its credential is checked: for traces, for example. */
  readonly onRequest?: ((request: AdmitRequest) => void) | undefined;
  /** Called for every answered request, including refused ones and probes: for metrics, for example. */
  readonly onAnswer?: ((answer: AnsweredRequest) => void) | undefined;
}

/** The names of {@link PlantServerOptions}. */
export const plantServerOptionNames: OptionNames<PlantServerOptions> = {
  publicUrl: true,
  docs: true,
  corsOrigins: true,
  trustedProxies: true,
  proxyFields: true,
  proxyProtocol: true,
  ratePerPrincipal: true,
  ratePerAddress: true,
  requestIdAnswers: true,
  probeLines: true,
  httpEngine: true,
  jwtIssuers: true,
  providerScopes: true,
  drainDelayMs: true,
  drainTimeoutMs: true,
  store: required,
  auth: true,
  limits: true,
  log: true,
  auditLog: true,
  deletionLog: true,
  interceptors: true,
  logFields: true,
  endpoints: true,
  onRequest: true,
  onAnswer: true,
};
