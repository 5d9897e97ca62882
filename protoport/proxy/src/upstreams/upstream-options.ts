import { inspect } from "node:util";
import { fieldsNotForwarded, isToken, maxTimerMs } from "@protoport/gateway/exchange";
import { type OptionNames, required, withDefaultLimits } from "@protoport/gateway/options";
import type { UpstreamTls } from "./open-socket.ts";
import {
  connectionsDefault,
  maxConnections,
  defaultKeepaliveMs,
  defaultResolveEveryMs,
  type UpstreamLimits,
  upstreamLimits,
} from "./upstream-limits.ts";

/** Resolves a name. Rejects, or resolves to an empty array, if the name is unknown. */
export type UpstreamLookup = (host: string) => Promise<readonly { readonly address: string }[]>;

/** Options for {@link createUpstream}. */
export interface UpstreamOptions {
  /**
   * The server addresses: `http://host:port`, `https://host:port`, `unix:/path`, or `dns:host:port`, which resolves to
   * one or more servers. All addresses must have the same scheme. Requests have the first address as their authority.
   */
  readonly addresses: string | readonly string[];
  /**
   * Trusted certificates (`ca`), client certificate (`cert`, `key`), the server's name (`servername`). For `dns:`, even
   * `{}` enables TLS.
   */
  readonly tls?: UpstreamTls;
  /**
   * Maximum connections to each server, from 1 to 1,000. A connection is opened when no other has a free stream.
   * Default 100. Additional connections are closed after a minute without a call.
   */
  readonly connections?: number;
  /**
   * If no data is received for this many milliseconds while calls are in flight, a PING is sent. The connection is
   * closed if the PING is not acknowledged within the same time, at most 20 s. Default 20 s. After two PINGs without a
   * response in between, the interval is at least 310 s, because gRPC servers close connections that send more PINGs.
   */
  readonly keepaliveMs?: number;
  /**
   * Milliseconds after which a `dns:` name is resolved again if calls are made. Default 30 s. Names are also
   * resolved after a connection was lost.
   */
  readonly resolveEveryMs?: number;
  /** Resolves `dns:` names. Defaults to the system's resolver. */
  readonly lookup?: UpstreamLookup;
  /**
   * The service whose health is watched with `grpc.health.v1.Health/Watch` on each connection, or `""` for the entire
   * server. Calls go only to servers that report SERVING or do not implement the health service. By default, health is
   * not checked.
   */
  readonly healthService?: string;
  /** Milliseconds after which a connection is replaced, ±10 %, so that load balancers distribute new connections. */
  readonly maxConnectionAgeMs?: number;
  /** Limits on queues, connections and waits. */
  readonly limits?: Partial<UpstreamLimits>;
}

/** The member names in {@link UpstreamOptions}. */
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

/** The {@link UpstreamOptions} with default values. */
export type CompleteUpstreamOptions = Required<Omit<UpstreamOptions, "tls" | "lookup" | "healthService" | "limits">> &
  Pick<UpstreamOptions, "tls" | "lookup" | "healthService"> & { readonly limits: UpstreamLimits };

/** Adds default values to options. @throws RangeError for a number out of range */
export function readUpstreamOptions(options: UpstreamOptions): CompleteUpstreamOptions {
  const defaults = {
    connections: connectionsDefault,
    keepaliveMs: defaultKeepaliveMs,
    resolveEveryMs: defaultResolveEveryMs,
    maxConnectionAgeMs: Number.POSITIVE_INFINITY,
  };
  const limits = withDefaultLimits(options.limits, upstreamLimits);
  const settings = { ...withDefaultLimits(options, defaults), limits };
  requireRange("connections", settings.connections, 1, maxConnections);
  requireRange("keepaliveMs", settings.keepaliveMs, 1, Number.MAX_SAFE_INTEGER);
  requireRange("resolveEveryMs", settings.resolveEveryMs, 1, Number.MAX_SAFE_INTEGER);
  requireRange("maxConnectionAgeMs", settings.maxConnectionAgeMs, 1, Number.POSITIVE_INFINITY);
  for (const [name, value] of Object.entries(settings.limits)) {
    const maximum = name.endsWith("Ms") ? maxTimerMs : Number.MAX_SAFE_INTEGER;
    requireRange(`limits.${name}`, value, 1, maximum);
  }
  return settings;
}

/** @throws RangeError if the value is not a number from `least` to `most` */
export function requireRange(name: string, value: number, least: number, most: number): void {
  // A JavaScript caller may pass a string, for example from an environment variable.
  if (typeof value === "number" && value >= least && value <= most) return;
  throw new RangeError(`${name} must be between ${least} and ${most}, got ${inspect(value)}`);
}

// Pseudo-header fields and gRPC fields. `grpc-trace-bin`, OpenCensus's trace context, is metadata.
const protocolPrefix = /^(?::|grpc-(?!trace-bin$))/;

/**
 * Returns whether a field describes a connection, a message or gRPC, so that only the protocol sets the field.
 *
 * @param name - in lower case
 */
export function isProtocolField(name: string): boolean {
  return fieldsNotForwarded.has(name) || protocolPrefix.test(name);
}

/** Returns whether a configuration can set a field. @param name - in lower case */
export function isSettable(name: string): boolean {
  return isToken(name) && !isProtocolField(name);
}
