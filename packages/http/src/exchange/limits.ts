/** Limits on memory and time that clients can make the server spend. */
export interface Limits {
  /**
   * Bytes in a request's header fields, counting 32 for each in addition to its text (RFC 9113 §6.5.2). Larger headers
   * get status 431. Default 16 KiB.
   */
  readonly headerBytes: number;
  /**
   * Bytes in the request target. Longer targets get status 414. Default 8 KiB, the minimum that RFC 9110 §4.1
   * recommends.
   */
  readonly urlBytes: number;
  /** Milliseconds until a request header must be complete. Default 10 s. */
  readonly headerTimeoutMs: number;
  /**
   * Milliseconds until a body must have arrived: every body over HTTP/1.1, and unary call bodies over HTTP/2. Has no
   * effect in your own servers. Default 5 min.
   */
  readonly requestTimeoutMs: number;
  /**
   * Milliseconds for which a connection may be idle, or a client may leave its response unread. Default 75 s: longer
   * than the 60 s of common proxies. An HTTP/2 connection is idle if it has no stream. With node:http2 an unread
   * response is aborted only when nothing else is sent on its connection.
   */
  readonly idleTimeoutMs: number;
  /** Streams that an HTTP/2 connection may have open. Further ones are refused. Default 256. */
  readonly concurrentStreams: number;
  /**
   * Unread request body bytes that an HTTP/2 connection may send: its receive window. Each stream may send up to 256
   * KiB. A connection above the limit stalls until a body is read. Default 1 MiB.
   */
  readonly connectionWindowBytes: number;
  /**
   * Bytes that all connections together may buffer because their clients do not read. Above the limit, the connections
   * whose clients have read nothing for the longest time are closed. Default 256 MiB: half of a small machine's memory.
   */
  readonly backlogBytes: number;
  /**
   * Connections that may be open at the same time. Up to 64 more are served, so that probes get a response. Beyond
   * those, each new one closes the oldest one among the 64 that has no request. Default 10,000, below the usual 65,536
   * descriptors.
   */
  readonly connections: number;
  /** Milliseconds that a unary call may take if its client sets no deadline, or 0 for no limit. Default 0. */
  readonly defaultTimeoutMs: number;
}

/** The defaults of {@link Limits}. */
export const defaultLimits: Limits = {
  headerBytes: 16 * 1024,
  urlBytes: 8 * 1024,
  headerTimeoutMs: 10_000,
  requestTimeoutMs: 300_000,
  idleTimeoutMs: 75_000,
  concurrentStreams: 256,
  connectionWindowBytes: 1024 * 1024,
  backlogBytes: 256 * 1024 * 1024,
  connections: 10_000,
  defaultTimeoutMs: 0,
};

/**
 * How many bytes from an unread body are received and dropped, so that the connection can be reused, or so that closing
 * it does not lose the response to a client that is still sending (RFC 9112 §9.6).
 */
// 256 KiB, as in Go's server: clients that read only after sending commonly send up to that much.
export const unreadBodyBytesMax: number = 256 * 1024;

/**
 * Milliseconds for which an HTTP/1.1 connection is still read after its last response if the client continues to send,
 * and for which a call continues if its client has closed its side and cannot be probed.
 */
// 30 seconds, as in nginx: enough for 64 MiB at 18 Mbit/s, and less than the idle timeout.
export const lingerMsMax: number = 30_000;

/** Bytes that are received and dropped after an HTTP/1.1 connection's last response. */
// Dropping so much costs as much as a few hundred calls.
export const lingerBytesMax: number = 64 * 1024 * 1024;

/** Milliseconds for which an HTTP/1.1 connection above the maximum age must be idle before it is closed. */
// By then, a busy client has sent its next call, and the response to that call closes the connection without loss.
export const retiredIdleMs: number = 1000;

/** The `readMaxBytes` default, the largest message in bytes, compressed or not: 4 MiB, as in gRPC. */
export const defaultReadMaxBytes: number = 4 * 1024 * 1024;
