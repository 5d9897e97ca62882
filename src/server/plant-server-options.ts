import type { Interceptor } from "@connectrpc/connect";
import type { MetadataEndpoint, TokenVerifier } from "../auth/index.ts";
import type { Answer, CorsOptions, Limits } from "../gateway/index.ts";
import type { Log } from "../operations/log.ts";
import type { PlantStore } from "../plants/index.ts";

/** The parts of a plant server, and how it behaves. */
export interface PlantServerOptions extends PlantServerReach, PlantServerWatch, PlantServerDrain {
  /** Where plants are kept. The caller opened it and closes it, after the server. */
  readonly store: PlantStore;
  /** Who vouches for tokens. Without one nobody is admitted, and only a loopback address is listened on. */
  readonly auth?: TokenVerifier | undefined;
}

/** How clients reach it, and what they learn of it. */
export interface PlantServerReach {
  /** The path of the base URL, such as "/api"; every path of the server begins with it. Default "". */
  readonly requestPathPrefix?: string | undefined;
  /** The description of this service as a protected resource (RFC 9728), to which challenges then point. */
  readonly resourceMetadata?: MetadataEndpoint | undefined;
  /** The description at `/openapi.json` and its page at `/docs`. By default only who has a credential may read them. */
  readonly description?: PlantDescriptionOptions | undefined;
  /** Which pages of other origins may call from browsers. None by default. */
  readonly cors?: CorsOptions | undefined;
  /** Bounds on connections, headers and waits, where they are to differ from the gateway's own. */
  readonly limits?: Partial<Limits> | undefined;
}

/** Who is told of what happens in it. */
export interface PlantServerWatch {
  /** Where calls and faults are logged; nowhere by default. */
  readonly log?: Log | undefined;
  /**
   * Where the audit trail goes, one line per refused credential and per deletion: a log whose own level lets `info` through.
   * Left out, these are lines of `log`, and only there if its level lets them through.
   */
  readonly auditLog?: Log | undefined;
  /** Interceptors of the embedder, between the credential check and the service: traces, for example. */
  readonly interceptors?: readonly Interceptor[] | undefined;
  /** Told of every answered request, refused ones and probes included: metrics, for example. */
  readonly onAnswer?: ((answer: Answer) => void) | undefined;
}

/** How it ends. */
export interface PlantServerDrain {
  /** Milliseconds to serve on after readiness went off, for load balancers to notice. Default 0. */
  readonly drainDelayMs?: number | undefined;
  /** Milliseconds that calls which were taken may still run once that is over. Default 20,000. */
  readonly drainTimeoutMs?: number | undefined;
}

/** How the description is served. */
export interface PlantDescriptionOptions {
  /** Whether everybody may read it; `/` then leads to its page. Default false. */
  readonly open?: boolean;
  /** The base URL that it names. Default: the one under which it was fetched, as a path. */
  readonly baseUrl?: string | undefined;
}
