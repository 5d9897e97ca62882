import { integer, type SettingType, text } from "@plantstore/command-line/settings";
import { namesOf, timerMsMax, type OptionNames, required } from "@plantstore/http";
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

/** The options that the library and the configuration file have in common: numbers and a name. */
export type ConnectionOptions = Omit<UpstreamOptions, "addresses" | "tls" | "lookup" | "limits">;

/** An option's type and description in the configuration file, and the largest number that the library accepts. */
interface ConnectionOption<T> {
  readonly type: SettingType<T>;
  readonly about: string;
  readonly most?: number;
}

/** A duration in milliseconds in the configuration file. At most a day, which is enough for all options. */
const ms = integer(1, 86_400_000);

/** The types, descriptions and limits of the {@link ConnectionOptions}. */
export const connectionOptions: {
  readonly [Name in keyof ConnectionOptions]-?: ConnectionOption<NonNullable<ConnectionOptions[Name]>>;
} = {
  connections: {
    type: integer(1, connectionsMax),
    about: "Maximum connections to each server. Default 100.",
    most: connectionsMax,
  },
  keepaliveMs: {
    type: ms,
    about: "Milliseconds without data, while calls are in flight, after which a PING is sent. Default 20000.",
    most: Number.MAX_SAFE_INTEGER,
  },
  resolveEveryMs: {
    type: ms,
    about: "Milliseconds after which a name of `dns:` is resolved again if calls are made. Default 30000.",
    most: Number.MAX_SAFE_INTEGER,
  },
  healthService: {
    type: text(),
    about:
      'Service whose health decides which servers get calls; `""` for the entire server. Default: no health checks.',
  },
  maxConnectionAgeMs: {
    type: ms,
    about: "Milliseconds after which a connection is replaced, ±10 %. Default: never.",
    most: Number.POSITIVE_INFINITY,
  },
};

/** The member names in {@link UpstreamOptions}. */
export const upstreamOptionNames: OptionNames<UpstreamOptions> = {
  addresses: required,
  tls: true,
  ...namesOf(connectionOptions),
  lookup: true,
  limits: upstreamLimits,
};

/** The {@link UpstreamOptions} with default values. */
export type CompleteUpstreamOptions = UpstreamOptions &
  Required<Omit<ConnectionOptions, "healthService">> & { readonly limits: UpstreamLimits };

/** Adds default values to options. @throws RangeError for a number out of range */
export function readUpstreamOptions(options: UpstreamOptions): CompleteUpstreamOptions {
  const settings = {
    connections: connectionsDefault,
    keepaliveMs: defaultKeepaliveMs,
    resolveEveryMs: defaultResolveEveryMs,
    maxConnectionAgeMs: Number.POSITIVE_INFINITY,
    ...options,
    limits: { ...upstreamLimits, ...options.limits },
  };
  const given: Readonly<Record<string, unknown>> = { ...settings };
  for (const [name, { most }] of Object.entries<{ readonly most?: number }>(connectionOptions))
    if (most !== undefined) requireRange(name, given[name], 1, most);
  for (const [name, value] of Object.entries(settings.limits)) {
    const maximum = name.endsWith("Ms") ? timerMsMax : Number.MAX_SAFE_INTEGER;
    requireRange(`limits.${name}`, value, 1, maximum);
  }
  return settings;
}
