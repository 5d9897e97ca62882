import { defaultHttp2Limits, type Http2Limits } from "@protoport/gateway/http2-client";

/** Limits on queues, connections and waits. */
export interface UpstreamLimits {
  /** Maximum calls that wait for a connection or a stream. 65,536: three times a burst of 20,000 calls. */
  readonly waitingCalls: number;
  /** Maximum milliseconds that a call waits for a stream on a connected server. 30 s: half the usual proxy timeout. */
  readonly queueTimeoutMs: number;
  /** Maximum bytes in all calls that are queued to be sent. Above it, new calls fail. 64 MiB. */
  readonly queuedBytes: number;
  /**
   * Maximum streams per connection, even if the server allows more. 1,000, because they share the connection's window.
   */
  readonly callsPerConnection: number;
  /**
   * Maximum streams opened before a server's SETTINGS arrive. 100, because most servers allow at least as many
   * (RFC 9113 §6.5.2).
   */
  readonly streamsBeforeSettings: number;
  /**
   * Timeout in milliseconds for opening a connection, TLS included, or resolving a name. 20 s: gRPC's
   * MIN_CONNECT_TIMEOUT.
   */
  readonly connectTimeoutMs: number;
  /** Milliseconds after which calls in flight are aborted when the upstream is closed. 10 s. */
  readonly closeTimeoutMs: number;
  /**
   * Maximum bytes in a response's header or trailer, plus 32 per field. Above it, the call fails. 64 KiB, because
   * errors with details are in the trailer.
   */
  readonly headerBytes: number;
  /** Milliseconds without a call after which the first connection is closed. 30 min, as in gRPC's clients. */
  readonly idleTimeoutMs: number;
  /** The idle time for additional connections, which are needed only during a burst. 1 min. */
  readonly additionalIdleTimeoutMs: number;
}

/** The {@link UpstreamLimits} defaults. */
export const upstreamLimits: UpstreamLimits = {
  waitingCalls: 65_536,
  queueTimeoutMs: 30_000,
  queuedBytes: 64 * 1024 * 1024,
  callsPerConnection: 1_000,
  streamsBeforeSettings: 100,
  connectTimeoutMs: 20_000,
  closeTimeoutMs: 10_000,
  headerBytes: 65_536,
  idleTimeoutMs: 30 * 60_000,
  additionalIdleTimeoutMs: 60_000,
};

/** Default maximum for connections to a server. 100: with the 100 streams that many servers allow, 10,000 calls. */
export const connectionsDefault = 100;

/** Upper bound for the option `connections`. 1,000, like the maximum for servers. */
export const maxConnections = 1_000;

/** Maximum servers per upstream. Further addresses for a name are ignored. 1,000: more than any usual name has. */
export const maxServers = 1_000;

/** Milliseconds after which a name is resolved again if calls are made. 30 s, as in gRPC's clients. */
export const defaultResolveEveryMs = 30_000;

/** Minimum milliseconds between two name lookups, even if connections are lost. 1 s. */
export const lookupGapMs = 1_000;

/**
 * If no data is received for this many milliseconds while calls are in flight, a PING is sent. 20 s, because with 20 s
 * for its acknowledgement, a frozen server is detected before most callers give up.
 */
export const defaultKeepaliveMs: number = 20_000;

/**
 * Default timeout in milliseconds for unary REST calls. 15 s, as in Envoy. Most REST clients cannot set a deadline, and
 * an upstream that hangs would hold their calls.
 */
export const defaultRestTimeoutMs: number = 15_000;

/**
 * Maximum bytes of an encoded header or trailer that are read. A header between the configured limit and this maximum
 * fails only its call. A larger header closes the connection. 1 MiB: ten times what other proxies pass.
 */
const readBlockBytes = 1024 * 1024;

/**
 * The smallest average header frame for which {@link readBlockBytes} are read. 4 KiB; most servers fill 16 KiB.
 */
const smallFrameBytes = 4 * 1024;

/** Returns a client connection's limits. @param idleTimeoutMs - how long it stays open without a call */
export function toClientLimits(limits: UpstreamLimits, keepaliveMs: number, idleTimeoutMs: number): Http2Limits {
  return {
    ...defaultHttp2Limits,
    concurrentStreams: limits.callsPerConnection,
    headerListBytes: limits.headerBytes,
    headerBlockBytes: Math.max(readBlockBytes, limits.headerBytes),
    continuations: Math.ceil(Math.max(readBlockBytes, limits.headerBytes) / smallFrameBytes),
    // Large enough that calls whose messages are not read cannot block others by filling their stream windows.
    connectionWindowBytes: limits.callsPerConnection * defaultHttp2Limits.streamWindowBytes,
    idleTimeoutMs,
    stallTimeoutMs: Math.min(defaultHttp2Limits.stallTimeoutMs, keepaliveMs),
    // No limit. The caller's deadline limits how long a request may be blocked.
    blockedTimeoutMs: Number.POSITIVE_INFINITY,
  };
}
