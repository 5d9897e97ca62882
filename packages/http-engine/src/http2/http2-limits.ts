/** Bounds on what a peer may make a connection hold or do, and their defaults. */
export type Http2Limits = Readonly<typeof defaultHttp2Limits>;

/** The defaults of {@link Http2Limits}. Above a count, the connection ends with ENHANCE_YOUR_CALM. */
export const defaultHttp2Limits = {
  /** Streams open at once; further ones are refused. */
  concurrentStreams: 256,
  /** Bytes of a header list by RFC 9113 §6.5.2; the request is answered with 431 above. 16 KiB. */
  headerListBytes: 16_384,
  /** Bytes of a header block as sent, in all its frames. 64 KiB: four times the size of the list. */
  headerBlockBytes: 65_536,
  /** CONTINUATION frames of a header block. 16: more than a block of the allowed size needs. */
  continuations: 16,
  /** Bytes that a stream may send before its reader takes them. 256 KiB: one round trip for such a message. */
  streamWindowBytes: 262_144,
  /** Bytes that all streams together may send before their readers take them. 1 MiB. */
  connectionWindowBytes: 1_048_576,
  /** Milliseconds of the interval for the counts below. 10 s. */
  intervalMs: 10_000,
  /**
   * Streams per interval that fail, or are reset early and before their answer is complete. More are allowed while they
   * are at most {@link resetShare} of the streams opened. CVE-2023-44487.
   */
  resets: 400,
  resetShare: 0.5,
  /** Milliseconds within which a reset is early. 1 s: a client that has waited longer has given up. */
  rapidResetMs: 1_000,
  /** SETTINGS frames, and acknowledgements of ours, per interval. */
  settings: 100,
  /** PING frames per interval, beyond one for each HEADERS and DATA frame that we sent. */
  pings: 2_000,
  /** Empty DATA frames that do not end their stream, per interval. */
  emptyData: 200,
  /** Frames without effect per interval, beyond two for each stream. */
  ignoredFrames: 2_000,
  /** WINDOW_UPDATE frames per interval, beyond two for each stream and each DATA frame that we sent. */
  windowUpdates: 5_000,
  /** Bytes of bodies per connection that wait for the peer's windows; above it, streams are refused. 16 MiB. */
  queuedBytes: 16_777_216,
  /**
   * Bytes that the socket still holds, above which we stop reading from the peer. 512 KiB: room for the headers
   * of all streams. DATA alone never gets there, because it waits in its queue once the socket is full.
   */
  unreadBytes: 524_288,
  /**
   * Milliseconds without a stream after which the connection ends, or with streams and without a frame after which the
   * peer is sent a PING. 75 s.
   */
  idleTimeoutMs: 75_000,
  /**
   * Milliseconds for what a peer does by itself: send and acknowledge SETTINGS, complete a header block, answer a PING.
   * 20 s.
   */
  stallTimeoutMs: 20_000,
  /** Milliseconds for which a peer may take none of an answer, or of all output. 75 s: readers may pause. */
  blockedTimeoutMs: 75_000,
  /** Milliseconds until a body that a call waits for must be complete. 5 min. */
  requestTimeoutMs: 300_000,
  /** Milliseconds that a peer may go on sending a body after its answer, or anything after GOAWAY. 1 s. */
  lingerMs: 1_000,
};
