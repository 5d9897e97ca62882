/** Bounds on what a peer may make a connection hold or do. Beyond one of the counts it is told to calm down. */
export interface Http2Limits {
  /** Streams open at once; further ones are refused. Default 256. */
  readonly concurrentStreams: number;
  /** Bytes of a header list by RFC 9113 §6.5.2; the request is answered with 431 above. Default 16 KiB. */
  readonly headerListBytes: number;
  /** Bytes of a header block as sent, all its frames together. Default 64 KiB: four times the list that is allowed. */
  readonly headerBlockBytes: number;
  /** CONTINUATION frames of a header block. Default 16: more than any block of the allowed size needs. */
  readonly continuations: number;
  /** Bytes that a stream may send ahead of its reader. Default 256 KiB: one round trip for a message of that size. */
  readonly streamWindowBytes: number;
  /** Bytes that all streams together may send ahead. Default 1 MiB. */
  readonly connectionWindowBytes: number;
  /** Milliseconds over which the counts below are taken. Default 10 s. */
  readonly intervalMs: number;
  /** Streams that fail or are reset before their answer is complete, per interval. Default 400 (CVE-2023-44487). */
  readonly resets: number;
  /** SETTINGS, and acknowledgements of ours, per interval. Default 100. */
  readonly settings: number;
  /** PING per interval. Default 2,000: some clients measure the bandwidth by them, one each round trip. */
  readonly pings: number;
  /** DATA without data that do not end their stream, per interval. Default 200. */
  readonly emptyData: number;
  /** Frames that take no part in anything, per interval beyond two for each stream. Default 2,000. */
  readonly ignoredFrames: number;
  /** WINDOW_UPDATE per interval beyond two for each DATA frame that we sent. Default 5,000. */
  readonly windowUpdates: number;
  /**
   * Bytes of answers that wait for the peer to take them, per connection; above, further streams are refused,
   * and a peer that does not even take what must be said is left. Default 16 MiB.
   */
  readonly queuedBytes: number;
  /** The same for all connections together; above, an answer that would have to wait is given up. Default 256 MiB. */
  readonly queuedBytesTotal: number;
  /** Milliseconds without a byte from the peer until it is asked for a sign of life, or let go if nothing is open. Default 75 s. */
  readonly idleTimeoutMs: number;
  /** Milliseconds for what a peer does by itself: SETTINGS and their acknowledgement, a header block, a PING. Default 20 s. */
  readonly stallTimeoutMs: number;
  /** Milliseconds that an answer may wait for a peer that takes nothing of it. Default 75 s: readers may pause. */
  readonly blockedTimeoutMs: number;
  /** Milliseconds until a body that is waited for must be complete. Default 5 min. */
  readonly requestTimeoutMs: number;
}

/** The limits that hold where an option does not say otherwise. */
export const defaultHttp2Limits: Http2Limits = {
  concurrentStreams: 256,
  headerListBytes: 16 * 1024,
  headerBlockBytes: 64 * 1024,
  continuations: 16,
  streamWindowBytes: 256 * 1024,
  connectionWindowBytes: 1024 * 1024,
  intervalMs: 10_000,
  resets: 400,
  settings: 100,
  pings: 2000,
  emptyData: 200,
  ignoredFrames: 2000,
  windowUpdates: 5000,
  queuedBytes: 16 * 1024 * 1024,
  queuedBytesTotal: 256 * 1024 * 1024,
  idleTimeoutMs: 75_000,
  stallTimeoutMs: 20_000,
  blockedTimeoutMs: 75_000,
  requestTimeoutMs: 300_000,
};
