/** Bounds on what a client may make the server hold or wait for. Each has a unit and a reason. */
export interface Limits {
  /** Bytes of all header fields of a request, 32 for each beside its text as RFC 9113 §6.5.2 counts them; 431 above. Default 16 KiB. */
  readonly headerBytes: number;
  /** Bytes of the request target; 414 above. Default 8 KiB, the least RFC 9110 §4.1 recommends. */
  readonly urlBytes: number;
  /** Milliseconds until the header of a request must be complete. Default 10 s. */
  readonly headerTimeoutMs: number;
  /** Milliseconds until a request of HTTP/1.1, or on the gateway's own HTTP/2 the body of a unary call, must be complete. Default 5 min. */
  readonly requestTimeoutMs: number;
  /**
   * Milliseconds a connection may be idle before it is closed, or a client leave lie what it is answered.
   * Default 75 s: longer than the 60 s of common proxies. A connection of HTTP/1.1 is idle after twice `headerTimeoutMs` at the
   * earliest. With node:http2 an answer that lies is given up once its connection carries nothing else either.
   */
  readonly idleTimeoutMs: number;
  /**
   * Streams that an HTTP/2 connection may have open; further ones are refused. Requests that a connection of HTTP/1.1 may have
   * under way; while there are more, what its client sends ahead is left unread. Default 256.
   */
  readonly concurrentStreams: number;
  /** Connections open at once; further ones are closed. Default 10,000, below the usual 65,536 descriptors. */
  readonly connections: number;
  /** Milliseconds that a unary call may take if its client names no deadline; 0 for no bound. Default 0. */
  readonly defaultTimeoutMs: number;
}

/** The limits that hold where an option does not say otherwise. */
export const defaultLimits: Limits = {
  headerBytes: 16 * 1024,
  urlBytes: 8 * 1024,
  headerTimeoutMs: 10_000,
  requestTimeoutMs: 300_000,
  idleTimeoutMs: 75_000,
  concurrentStreams: 256,
  connections: 10_000,
  defaultTimeoutMs: 0,
};

/** Bytes of a message, compressed or not, where `readMaxBytes` does not say otherwise: gRPC's own 4 MiB. */
export const defaultReadMaxBytes: number = 4 * 1024 * 1024;
