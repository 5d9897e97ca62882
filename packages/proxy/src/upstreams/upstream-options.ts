import { timerMsMax } from "@plantstore/gateway/exchange";
import { type OptionNames, required } from "@plantstore/gateway/options";
import { type UpstreamTls } from "./open-socket.ts";
import { requireRange } from "./require-range.ts";
import {
  connectionsDefault,
  connectionsMax,
  defaultKeepaliveMs,
  defaultResolveEveryMs,
  type UpstreamLimits,
  upstreamLimits,
} from "./upstream-limits.ts";

/** Looks a name up. Rejects, or returns none, for one that is not known. */
export type UpstreamLookup = (host: string) => Promise<readonly { readonly address: string }[]>;

/** Options of {@link createUpstream}. */
export interface UpstreamOptions {
  /**
   * Where the servers are: `http://host:port`, `https://host:port`, `unix:/path`, or `dns:host:port`, each of whose
   * addresses is a server. Several must have one scheme; requests name the authority of the first.
   */
  readonly addresses: string | readonly string[];
  /**
   * Certificates to trust (`ca`), our own (`cert` and `key`), the name of the server (`servername`). For `dns:`, even `{}`
   * means TLS.
   */
  readonly tls?: UpstreamTls;
  /**
   * Connections to each server at most, opened when all streams of the others are taken: from 1 to 1,000. Default 100.
   * One that is open in addition to the first is closed after a minute without a call.
   */
  readonly connections?: number;
  /** Milliseconds of silence, while calls wait, after which a server is sent a PING. Default 310 s. */
  readonly keepaliveMs?: number;
  /**
   * Milliseconds after which a name of `dns:` is looked up again, if calls are made. Default 30 s. It is also looked up
   * after a connection was lost.
   */
  readonly resolveEveryMs?: number;
  /** Looks names of `dns:` up. By default as the system does. */
  readonly lookup?: UpstreamLookup;
  /**
   * The service that `grpc.health.v1.Health/Watch` is asked for on each connection, `""` for the whole server: calls go
   * only where it is SERVING, or where there is no such service. By default, nothing is asked.
   */
  readonly healthService?: string;
  /** Milliseconds after which a connection is replaced, give or take a tenth, so that balancers see new ones. */
  readonly maxConnectionAgeMs?: number;
  /** Bounds on what calls may wait for and hold. */
  readonly limits?: Partial<UpstreamLimits>;
}

/** The names of {@link UpstreamOptions}. */
export const upstreamOptionNames: OptionNames<UpstreamOptions> = {
  addresses: required,
  tls: true,
  connections: true,
  keepaliveMs: true,
  resolveEveryMs: true,
  lookup: true,
  healthService: true,
  maxConnectionAgeMs: true,
  limits: upstreamLimits,
};

/** {@link UpstreamOptions} with their defaults. */
export type UpstreamSettings = Required<Omit<UpstreamOptions, "tls" | "lookup" | "healthService" | "limits">> &
  Pick<UpstreamOptions, "tls" | "lookup" | "healthService"> & { readonly limits: UpstreamLimits };

/** Adds the defaults. @throws RangeError for a number out of range */
export function readUpstreamOptions(options: UpstreamOptions): UpstreamSettings {
  const settings = {
    connections: connectionsDefault,
    keepaliveMs: defaultKeepaliveMs,
    resolveEveryMs: defaultResolveEveryMs,
    maxConnectionAgeMs: Number.POSITIVE_INFINITY,
    ...options,
    limits: { ...upstreamLimits, ...options.limits },
  };
  requireRange("connections", settings.connections, 1, connectionsMax);
  requireRange("keepaliveMs", settings.keepaliveMs, 1, Number.MAX_SAFE_INTEGER);
  requireRange("resolveEveryMs", settings.resolveEveryMs, 1, Number.MAX_SAFE_INTEGER);
  requireRange("maxConnectionAgeMs", settings.maxConnectionAgeMs, 1, Number.POSITIVE_INFINITY);
  for (const [name, value] of Object.entries(settings.limits)) {
    const most = name.endsWith("Ms") ? timerMsMax : Number.MAX_SAFE_INTEGER;
    requireRange(`limits.${name}`, value, 1, most);
  }
  return settings;
}
