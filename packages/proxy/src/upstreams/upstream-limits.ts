import { defaultHttp2Limits, type Http2Limits } from "@plantstore/http-engine/client";

/** Limits on queues, connections and waits. */
export interface UpstreamLimits {
  /** Maximum calls that wait for a connection or a stream. 65,536: three times a burst of 20,000 calls. */
  readonly waitingCalls: number;
  /** Milliseconds that a call waits for a stream of a connected server. 30 s: half the usual timeout of proxies. */
  readonly queueTimeoutMs: number;
  /** Maximum bytes queued to be sent, of all calls; above, new calls fail. 64 MiB. */
  readonly queuedBytes: number;
  /** Maximum streams of a connection, even if its server allows more. 1,000, because they share its window. */
  readonly callsPerConnection: number;
  /** Streams opened before the SETTINGS of a server arrive. 100: most allow as many (RFC 9113 §6.5.2). */
  readonly streamsBeforeSettings: number;
  /** Milliseconds to open a connection, TLS included, or to resolve a name. 20 s: gRPC's MIN_CONNECT_TIMEOUT. */
  readonly connectTimeoutMs: number;
  /** Milliseconds that calls may take after the upstream was closed. 10 s. */
  readonly closeTimeoutMs: number;
  /** Milliseconds without a call after which a connection is closed. 30 min, as in gRPC's clients. */
  readonly idleTimeoutMs: number;
  /** The same for additional connections, which only a burst needs. 1 min. */
  readonly surplusIdleTimeoutMs: number;
}

/** The defaults of {@link UpstreamLimits}. */
export const upstreamLimits: UpstreamLimits = {
  waitingCalls: 65_536,
  queueTimeoutMs: 30_000,
  queuedBytes: 64 * 1024 * 1024,
  callsPerConnection: 1_000,
  streamsBeforeSettings: 100,
  connectTimeoutMs: 20_000,
  closeTimeoutMs: 10_000,
  idleTimeoutMs: 30 * 60_000,
  surplusIdleTimeoutMs: 60_000,
};

/** Default maximum of connections to a server. 100: with the 100 streams that many servers allow, 10,000 calls. */
export const connectionsDefault = 100;

/** The highest maximum of connections that can be set. 1,000: as many as servers of an upstream. */
export const connectionsMax = 1_000;

/** Maximum servers of an upstream; further addresses of a name are ignored. 1,000: more than names have. */
export const serversMax = 1_000;

/** Milliseconds after which a name is resolved again, while calls are made. 30 s, as in gRPC's clients. */
export const defaultResolveEveryMs = 30_000;

/** Minimum milliseconds between two lookups of a name, even if connections are lost. 1 s. */
export const lookupGapMs = 1_000;

/**
 * Milliseconds without received data, while calls are in flight, after which a PING is sent. 310 s: gRPC servers close
 * connections whose clients send more than one in five minutes (gRFC A8).
 */
export const defaultKeepaliveMs: number = 310_000;

/** Returns the limits of a client connection. @param idleTimeoutMs - how long it stays open without a call */
export function toClientLimits(limits: UpstreamLimits, keepaliveMs: number, idleTimeoutMs: number): Http2Limits {
  return {
    ...defaultHttp2Limits,
    concurrentStreams: limits.callsPerConnection,
    // So that calls whose messages are not read, even with full windows, do not block others.
    connectionWindowBytes: limits.callsPerConnection * defaultHttp2Limits.streamWindowBytes,
    idleTimeoutMs,
    stallTimeoutMs: Math.min(defaultHttp2Limits.stallTimeoutMs, keepaliveMs),
    // The caller's deadline limits how long a request may be blocked.
    blockedTimeoutMs: Number.POSITIVE_INFINITY,
  };
}
