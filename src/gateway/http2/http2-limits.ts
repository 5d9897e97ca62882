/** Bounds on what a peer may make a connection hold or do. Above a count, it ends with ENHANCE_YOUR_CALM. */
export interface Http2Limits {
  /** Streams open at once; further ones are refused. Default 256. */
  readonly concurrentStreams: number;
  /** Bytes of a header list by RFC 9113 §6.5.2; the request is answered with 431 above. Default 16 KiB. */
  readonly headerListBytes: number;
  /** Bytes of a header block as sent, in all its frames. Default 64 KiB: four times the size of the list. */
  readonly headerBlockBytes: number;
  /** CONTINUATION frames of a header block. Default 16: more than a block of the allowed size needs. */
  readonly continuations: number;
  /** Bytes that a stream may send before its reader takes them. Default 256 KiB: one round trip for such a message. */
  readonly streamWindowBytes: number;
  /** Bytes that all streams together may send before their readers take them. Default 1 MiB. */
  readonly connectionWindowBytes: number;
  /** Milliseconds of the interval for the counts below. Default 10 s. */
  readonly intervalMs: number;
  /**
   * Streams per interval that fail, or are reset early and before their answer is complete. More are allowed while they
   * are at most {@link resetShare} of the streams opened. Default 400, and half (CVE-2023-44487).
   */
  readonly resets: number;
  readonly resetShare: number;
  /** Milliseconds within which a reset is early. Default 1 s: a client that has waited longer has given up. */
  readonly rapidResetMs: number;
  /** SETTINGS frames, and acknowledgements of ours, per interval. Default 100. */
  readonly settings: number;
  /** PING frames per interval, beyond one for each HEADERS and DATA frame that we sent. Default 2,000. */
  readonly pings: number;
  /** Empty DATA frames that do not end their stream, per interval. Default 200. */
  readonly emptyData: number;
  /** Frames without effect per interval, beyond two for each stream. Default 2,000. */
  readonly ignoredFrames: number;
  /** WINDOW_UPDATE frames per interval, beyond two for each stream and each DATA frame that we sent. Default 5,000. */
  readonly windowUpdates: number;
  /** Bytes of bodies per connection that wait for the peer's windows; above it, streams are refused. Default 16 MiB. */
  readonly queuedBytes: number;
  /**
   * Bytes that the socket still holds, above which we stop reading from the peer. Default 512 KiB: room for the headers
   * of all streams. DATA alone never gets there, because it waits in its queue once the socket is full.
   */
  readonly unreadBytes: number;
  /**
   * Milliseconds without a stream after which the connection ends, or with streams and without a frame after which the
   * peer is sent a PING. Default 75 s.
   */
  readonly idleTimeoutMs: number;
  /**
   * Milliseconds for what a peer does by itself: send and acknowledge SETTINGS, complete a header block, answer a PING.
   * Default 20 s.
   */
  readonly stallTimeoutMs: number;
  /** Milliseconds for which a peer may take none of an answer, or of all output. Default 75 s: readers may pause. */
  readonly blockedTimeoutMs: number;
  /** Milliseconds until a body that a call waits for must be complete. Default 5 min. */
  readonly requestTimeoutMs: number;
  /** Milliseconds that a peer may go on sending a body after its answer, or anything after GOAWAY. Default 1 s. */
  readonly lingerMs: number;
}

/** The defaults of {@link Http2Limits}. */
export const defaultHttp2Limits: Http2Limits = {
  concurrentStreams: 256,
  headerListBytes: 16 * 1024,
  headerBlockBytes: 64 * 1024,
  continuations: 16,
  streamWindowBytes: 256 * 1024,
  connectionWindowBytes: 1024 * 1024,
  intervalMs: 10_000,
  resets: 400,
  resetShare: 0.5,
  rapidResetMs: 1000,
  settings: 100,
  pings: 2000,
  emptyData: 200,
  ignoredFrames: 2000,
  windowUpdates: 5000,
  queuedBytes: 16 * 1024 * 1024,
  unreadBytes: 512 * 1024,
  idleTimeoutMs: 75_000,
  stallTimeoutMs: 20_000,
  blockedTimeoutMs: 75_000,
  requestTimeoutMs: 300_000,
  lingerMs: 1000,
};
