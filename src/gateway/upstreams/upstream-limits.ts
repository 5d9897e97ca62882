import { defaultHttp2Limits, type Http2Limits } from "../http2/index.ts";

/** Bounds on what calls may wait for and hold. */
interface UpstreamLimits {
  /** Calls that wait for a connection or a stream; further ones fail. 4,096: more than a burst that a server survives. */
  readonly waitingCalls: number;
  /** Bytes that wait to be sent, of all calls; above it, calls that begin fail. 64 MiB. */
  readonly queuedBytes: number;
  /** Streams of a connection, whatever its server allows: 1,000, as they share its window. */
  readonly callsPerConnection: number;
  /** Streams that are opened before a server has said how many it takes. 100: most take as many (RFC 9113 §6.5.2). */
  readonly streamsBeforeSettings: number;
  /** Connections to a server at most. 8: beyond that a server is better helped by another. */
  readonly connectionsMax: number;
  /** Milliseconds until a connection must be open, TLS included. 20 s: gRPC's MIN_CONNECT_TIMEOUT. */
  readonly connectTimeoutMs: number;
  /** Milliseconds that calls may go on after the transport was closed. 10 s, as a server drains. */
  readonly closeTimeoutMs: number;
  /** Milliseconds without a call after which a connection is closed. 30 min, as in gRPC's clients. */
  readonly idleTimeoutMs: number;
}

/** The values of {@link UpstreamLimits}. */
export const upstreamLimits: UpstreamLimits = {
  waitingCalls: 4_096,
  queuedBytes: 64 * 1024 * 1024,
  callsPerConnection: 1_000,
  streamsBeforeSettings: 100,
  connectionsMax: 8,
  connectTimeoutMs: 20_000,
  closeTimeoutMs: 10_000,
  idleTimeoutMs: 30 * 60_000,
};

/**
 * Milliseconds of silence, while calls wait, after which a server is sent a PING. 310 s: gRPC's servers end connections
 * whose clients send more than one in five minutes (gRFC A8).
 */
export const defaultKeepaliveMs: number = 310_000;

/** Returns the limits of a client's connection. */
export function toClientLimits(keepaliveMs: number): Http2Limits {
  return {
    ...defaultHttp2Limits,
    concurrentStreams: upstreamLimits.callsPerConnection,
    // So that calls whose messages nobody reads, each with a window full of them, hold up no others.
    connectionWindowBytes: upstreamLimits.callsPerConnection * defaultHttp2Limits.streamWindowBytes,
    idleTimeoutMs: upstreamLimits.idleTimeoutMs,
    stallTimeoutMs: Math.min(defaultHttp2Limits.stallTimeoutMs, keepaliveMs),
    // How long a request may wait for its server is for its caller's deadline to say.
    blockedTimeoutMs: Number.POSITIVE_INFINITY,
  };
}
