import type { ContextValues, Interceptor } from "@connectrpc/connect";
import type { ResourceMetadata, TokenVerifier } from "../../operators/auth/index.ts";
import type {
  AdmitRequest,
  AnsweredRequest,
  CorsOptions,
  Endpoint,
  Limits,
  TrustedProxiesOptions,
} from "../../gateway/index.ts";
import type { Log, RequestIdAnswers } from "../../operators/operations/index.ts";
import type { PlantStore } from "../plants/index.ts";
import type { RateLimits } from "./limit-rates.ts";

/** Options of {@link createPlantServer}. */
export interface PlantServerOptions {
  /** The store of the plants. The caller opens it, and closes it after the server. */
  readonly store: PlantStore;
  /** The verifier of tokens. Without one, every call is refused, and only a loopback address may be listened on. */
  readonly auth?: TokenVerifier | undefined;
  /** The path of the base URL, such as "/api", with which every path of the server begins. Default "". */
  readonly requestPathPrefix?: string | undefined;
  /** The metadata of this service as a protected resource (RFC 9728); challenges then point to it. */
  readonly resourceMetadata?: ResourceMetadata | undefined;
  /** The description at `/openapi.json` and its page at `/docs`. By default they need a credential. */
  readonly description?: PlantDescriptionOptions | undefined;
  /** The other origins whose pages may send requests from browsers. Default none. */
  readonly cors?: CorsOptions | undefined;
  /** Bounds on connections, headers and waits that differ from the defaults of the gateway. */
  readonly limits?: Partial<Limits> | undefined;
  /**
   * Which answers carry their request id in `x-request-id`: all, or, the default, those to requests that sent one and
   * those that are errors.
   */
  readonly requestIdAnswers?: RequestIdAnswers | undefined;
  /** The proxies that are trusted to say who their client is. Default none. */
  readonly trustedProxies?: TrustedProxiesOptions | undefined;
  /** How often each principal and each address may call. Default: no limit. */
  readonly rateLimits?: RateLimits | undefined;
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
  /** Whether the log leaves out requests to the probes and to grpc.health.v1. Default false. */
  readonly silentProbes?: boolean | undefined;
  /** Additional interceptors between the credential check and the service: traces, for example. */
  readonly interceptors?: readonly Interceptor[] | undefined;
  /** Returns further fields for the line of a call in the log, by its context values: its trace, for example. */
  readonly logFields?: ((contextValues: ContextValues) => object) | undefined;
  /** Further plain HTTP resources, besides those of the server. They need a credential unless `open`. Default none. */
  readonly endpoints?: readonly Endpoint[] | undefined;
  /** Called with every request before its credential is checked: for traces, for example. */
  readonly onRequest?: ((request: AdmitRequest) => void) | undefined;
  /** Called for every answered request, including refused ones and probes: for metrics, for example. */
  readonly onAnswer?: ((answer: AnsweredRequest) => void) | undefined;
  /** Milliseconds to keep serving after readiness is turned off, so that load balancers can notice. Default 0. */
  readonly drainDelayMs?: number | undefined;
  /** Milliseconds that running calls get to finish after that. Default 20,000. */
  readonly drainTimeoutMs?: number | undefined;
}

/** How the OpenAPI description is served. */
export interface PlantDescriptionOptions {
  /** Whether everyone may read it; `/` then redirects to its page. Default false. */
  readonly open?: boolean;
  /** The base URL in it. Default: the path under which it was fetched. */
  readonly baseUrl?: string | undefined;
}
