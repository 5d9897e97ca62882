import { defaultHttp2Limits, type Http2Limits } from "@plantstore/http-engine/client";

/** Limits on queues, connections and waits. */
export interface UpstreamLimits {
  /** Maximum calls that wait for a connection or a stream. The default is three times a burst with 20,000 calls. */
  readonly waitingCalls: number;
  /**
   * Maximum milliseconds that a call waits for a stream on a connected server. The default, 30 s, is half the usual
   * proxy timeout.
   */
  readonly queueTimeoutMs: number;
  /** Maximum bytes in all calls that are queued to be sent. Above the limit, new calls fail. Default 64 MiB. */
  readonly queuedBytes: number;
  /**
   * Maximum streams per connection, even if the server allows more. Default 1,000, because all streams share the
   * connection's window.
   */
  readonly callsPerConnection: number;
  /**
   * Maximum streams opened before a server's SETTINGS arrive. Default 100, because most servers allow at least 100
   * streams (RFC 9113 §6.5.2).
   */
  readonly streamsBeforeSettings: number;
  /**
   * Timeout in milliseconds for opening a connection, TLS included, or resolving a name. The default, 20 s, is gRPC's
   * MIN_CONNECT_TIMEOUT.
   */
  readonly connectTimeoutMs: number;
  /** Milliseconds after which calls in flight are aborted when the upstream is closed. Default 10 s. */
  readonly closeTimeoutMs: number;
  /**
   * Maximum bytes in a response's header or trailer, with 32 extra bytes per field. A call above the limit fails.
   * Default 64 KiB, because errors with details are in the trailer.
   */
  readonly headerBytes: number;
  /** Milliseconds without a call after which the first connection is closed. Default 30 min, as in gRPC's clients. */
  readonly idleTimeoutMs: number;
  /** The idle time for additional connections, which are needed only during a burst. Default 1 min. */
  readonly additionalIdleTimeoutMs: number;
}

/** The default {@link UpstreamLimits}. */
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

/** Default maximum for connections to a server. 100 connections with the usual 100 streams serve 10,000 calls. */
export const connectionsDefault = 100;

/** Upper bound for the option `connections`. The bound is equal to the maximum for servers. */
export const connectionsMax = 1_000;

/**
 * Maximum servers per upstream. Further addresses for a name are ignored. Usual names have far fewer than 1,000
 * addresses.
 */
export const serversMax = 1_000;

/** Milliseconds after which a name is resolved again if calls are made. gRPC's clients also use 30 s. */
export const defaultResolveEveryMs = 30_000;

/** Minimum milliseconds between two name lookups, even if connections are lost. */
export const lookupGapMs = 1_000;

/**
 * If no data is received for this many milliseconds while calls are in flight, a PING is sent. With another 20 s for
 * the acknowledgement, a frozen server is detected before most callers give up.
 */
export const defaultKeepaliveMs: number = 20_000;

/**
 * Default timeout in milliseconds for unary REST calls. Envoy also uses 15 s. Most REST clients cannot set a deadline,
 * so an upstream that hangs would hold their calls.
 */
export const defaultRestTimeoutMs: number = 15_000;

/**
 * Maximum bytes of an encoded header or trailer that are read. A header between the configured limit and this maximum
 * fails only its call. A larger header closes the connection. 1 MiB is ten times the size that other proxies forward.
 */
const readBlockBytes = 1024 * 1024;

/** The smallest average header frame for which {@link readBlockBytes} are read. Most servers fill 16 KiB frames. */
const smallFrameBytes = 4 * 1024;

/** Returns a client connection's limits. @param idleTimeoutMs - how long the connection stays open without a call */
export function toClientLimits(limits: UpstreamLimits, keepaliveMs: number, idleTimeoutMs: number): Http2Limits {
  return {
    ...defaultHttp2Limits,
    concurrentStreams: limits.callsPerConnection,
    headerListBytes: limits.headerBytes,
    headerBlockBytes: Math.max(readBlockBytes, limits.headerBytes),
    continuations: Math.ceil(Math.max(readBlockBytes, limits.headerBytes) / smallFrameBytes),
    // The window is so large that calls whose messages are not read cannot block other calls.
    connectionWindowBytes: limits.callsPerConnection * defaultHttp2Limits.streamWindowBytes,
    idleTimeoutMs,
    stallTimeoutMs: Math.min(defaultHttp2Limits.stallTimeoutMs, keepaliveMs),
    // Unlimited, because the caller's deadline limits how long a request may be blocked.
    blockedTimeoutMs: Number.POSITIVE_INFINITY,
  };
}
