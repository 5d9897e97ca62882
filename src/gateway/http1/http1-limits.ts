/** Bounds on what a client may make an HTTP/1.1 connection hold or wait for. */
export interface Http1Limits {
  /** Bytes of the header fields as sent. */
  readonly headerBytes: number;
  /** Bytes of the request target. */
  readonly targetBytes: number;
  /** Milliseconds for a head to arrive, from its first byte. */
  readonly headerTimeoutMs: number;
  /** Milliseconds for a body to arrive, from the end of the head. */
  readonly requestTimeoutMs: number;
  /** Milliseconds without a request after which a connection is closed. */
  readonly idleTimeoutMs: number;
  /** Milliseconds for which a client may take none of what waits for it. */
  readonly stallTimeoutMs: number;
  /** Milliseconds for which a connection is read after its last answer while its client still sends. */
  readonly lingerMs: number;
  /** Bytes that are read, and dropped, after the last answer of a connection. */
  readonly lingerBytes: number;
  /** Bytes of an unwanted body that are read so that the connection can be kept. */
  readonly unwantedBodyBytes: number;
  /** Bytes that are read ahead: of a body that is not taken yet, and of requests behind one that is not answered. */
  readonly aheadBytes: number;
}

/** The defaults of those {@link Http1Limits} that no option of the gateway sets. */
export const defaultHttp1Limits: Pick<Http1Limits, "lingerMs" | "lingerBytes" | "aheadBytes"> = {
  // Half a minute, as in nginx: 64 MiB at 18 Mbit/s, and less than an idle connection has anyway.
  lingerMs: 30_000,
  // Clients send such bodies in one go, and dropping one costs as much as a few hundred calls.
  lingerBytes: 64 * 1024 * 1024,
  // What node reads from a socket at once.
  aheadBytes: 64 * 1024,
};
