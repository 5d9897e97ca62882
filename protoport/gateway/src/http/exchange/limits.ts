/** Limits on memory and time that clients can make the server spend. */
export interface Limits {
  /**
   * Maximum number of bytes in request header fields, with 32 additional bytes per field (RFC 9113 §6.5.2). Larger
   * headers get status 431. Default 16 KiB.
   */
  readonly headerBytes: number;
  /**
   * Maximum number of bytes in the request target. Longer targets get status 414. Default 8 KiB, the minimum that RFC
   * 9110 §4.1 recommends.
   */
  readonly urlBytes: number;
  /** Milliseconds in which a client must complete a request header. Default 10 s. */
  readonly headerTimeoutMs: number;
  /**
   * Milliseconds in which a client must complete a request body over HTTP/1.1, or the body of a unary call over HTTP/2.
   * Has no effect if the gateway is mounted in your own server. Default 5 min.
   */
  readonly requestTimeoutMs: number;
  /**
   * Milliseconds for which a connection may be idle, or a client may leave its response unread. Default 75 s, because
   * common proxies use 60 s. An HTTP/2 connection without streams is idle. With node:http2 an unread response is
   * aborted only when no other response is sent on the connection.
   */
  readonly idleTimeoutMs: number;
  /** Maximum number of open streams on an HTTP/2 connection. Further streams are refused. Default 256. */
  readonly concurrentStreams: number;
  /**
   * Receive window per HTTP/2 connection: the maximum number of request body bytes that were not read. Each stream may
   * send up to 256 KiB. A connection above the limit stalls until a body is read. Default 1 MiB.
   */
  readonly connectionWindowBytes: number;
  /**
   * Maximum number of bytes that all connections buffer because clients do not read. Above the limit, clients that have
   * not read for the longest time are disconnected. Default 256 MiB: half of a small machine's memory.
   */
  readonly backlogBytes: number;
  /**
   * Maximum number of open connections. 64 further connections are served, so that probes get a response. Each
   * connection beyond the 64 closes the oldest of the 64 that has no request. Default 10,000, below the usual 65,536
   * descriptors.
   */
  readonly connections: number;
  /** Milliseconds that a unary call may take if the client sets no deadline, or 0 for no limit. Default 0. */
  readonly defaultTimeoutMs: number;
}

/** The default {@link Limits}. */
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

/** Returns limits or options, with a default for each member that is missing or `undefined`. */
export function withDefaultLimits<Given extends object, Defaults extends Partial<Given>>(
  given: Given | undefined,
  defaults: Defaults,
): Defaults & Given;
export function withDefaultLimits(given: object | undefined, defaults: object): object {
  const set = Object.entries(given ?? {}).filter(([, limit]) => limit !== undefined);
  return { ...defaults, ...Object.fromEntries(set) };
}

/**
 * Maximum bytes from an unread body that are received and dropped. The connection can then be reused, and closing it
 * does not lose the response to a client that is still sending (RFC 9112 §9.6).
 */
// Go's server also uses 256 KiB. Clients that read only after sending commonly send up to 256 KiB.
export const maxUnreadBodyBytes: number = 256 * 1024;

/**
 * Milliseconds for which an HTTP/1.1 connection is read after the last response if the client continues to send. A call
 * also continues for 30 seconds if the client has closed its side and cannot be probed.
 */
// nginx also uses 30 seconds. 30 seconds are enough for 64 MiB at 18 Mbit/s, and less than the idle timeout.
export const maxLingerMs: number = 30_000;

/** Maximum number of bytes that are received and dropped after the last response on an HTTP/1.1 connection. */
// Dropping 64 MiB costs as much as a few hundred calls.
export const maxLingerBytes: number = 64 * 1024 * 1024;

/** Default for `readMaxBytes`, the maximum bytes in a message, compressed or decompressed: 4 MiB, as in gRPC. */
export const defaultReadMaxBytes: number = 4 * 1024 * 1024;
