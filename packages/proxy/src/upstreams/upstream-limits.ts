import { defaultHttp2Limits, type Http2Limits } from "@plantstore/http-engine/client";

/** Bounds on what calls may wait for and hold. */
export interface UpstreamLimits {
  /** Calls that wait for a connection or a stream; further ones fail. 65,536: three times a burst of 20,000 calls. */
  readonly waitingCalls: number;
  /** Milliseconds that a call waits for a stream of a server that is connected. 30 s: half of what proxies wait for us. */
  readonly queueTimeoutMs: number;
  /** Bytes that wait to be sent, of all calls; above it, calls that begin fail. 64 MiB. */
  readonly queuedBytes: number;
  /** Streams of a connection, whatever its server allows: 1,000, as they share its window. */
  readonly callsPerConnection: number;
  /** Streams that are opened before a server has said how many it takes. 100: most take as many (RFC 9113 §6.5.2). */
  readonly streamsBeforeSettings: number;
  /** Milliseconds until a connection must be open, TLS included, or a name looked up. 20 s: gRPC's MIN_CONNECT_TIMEOUT. */
  readonly connectTimeoutMs: number;
  /** Milliseconds that calls may go on after the upstream was closed. 10 s, as a server drains. */
  readonly closeTimeoutMs: number;
  /** Milliseconds without a call after which a connection is closed. 30 min, as in gRPC's clients. */
  readonly idleTimeoutMs: number;
  /** The same for connections in addition to the first one, which only a burst needs. 1 min. */
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

/** Connections to a server at most, unless set. 100: with the 100 streams that many servers allow, 10,000 calls. */
export const connectionsDefault = 100;

/** The most that the limit of connections can be set to. 1,000: as many as servers of an upstream. */
export const connectionsMax = 1_000;

/** Servers that an upstream may have; further addresses of a name are left out. 1,000: more than a name stands for. */
export const serversMax = 1_000;

/** Milliseconds after which a name is looked up again, as calls are made. 30 s, as in gRPC's clients. */
export const defaultResolveEveryMs = 30_000;

/** Milliseconds at least between two lookups of a name, however many connections are lost. 1 s. */
export const lookupGapMs = 1_000;

/**
 * Milliseconds of silence, while calls wait, after which a server is sent a PING. 310 s: gRPC's servers end connections
 * whose clients send more than one in five minutes (gRFC A8).
 */
export const defaultKeepaliveMs: number = 310_000;

/** Returns the limits of a client's connection. @param idleTimeoutMs - how long it may have no call */
export function toClientLimits(limits: UpstreamLimits, keepaliveMs: number, idleTimeoutMs: number): Http2Limits {
  return {
    ...defaultHttp2Limits,
    concurrentStreams: limits.callsPerConnection,
    // So that calls whose messages nobody reads, each with a window full of them, hold up no others.
    connectionWindowBytes: limits.callsPerConnection * defaultHttp2Limits.streamWindowBytes,
    idleTimeoutMs,
    stallTimeoutMs: Math.min(defaultHttp2Limits.stallTimeoutMs, keepaliveMs),
    // How long a request may wait for its server is for its caller's deadline to say.
    blockedTimeoutMs: Number.POSITIVE_INFINITY,
  };
}
