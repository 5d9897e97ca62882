/** Limits on what a peer may cause a connection to store or do. */
export type Http2Limits = Readonly<typeof defaultHttp2Limits>;

/** The defaults of {@link Http2Limits}. Above a count, the connection is closed with ENHANCE_YOUR_CALM. */
export const defaultHttp2Limits = {
  /** Concurrent streams. Further ones are refused. */
  concurrentStreams: 256,
  /** Bytes in a field list (RFC 9113 §6.5.2). Above the limit, the response is 431. 16 KiB. */
  headerListBytes: 16_384,
  /** An encoded field block's bytes, in all its frames. 64 KiB: four times the list size. */
  headerBlockBytes: 65_536,
  /** CONTINUATION frames in a field block. 16 is more than a block of the allowed size requires. */
  continuations: 16,
  /** A stream's receive window, in bytes. 256 KiB, so that such a message arrives in one round trip. */
  streamWindowBytes: 262_144,
  /** The connection's receive window, in bytes. 1 MiB. */
  connectionWindowBytes: 1_048_576,
  /** The interval for the counts below, in milliseconds. 10 s. */
  intervalMs: 10_000,
  /**
   * Streams per interval that fail, or that are reset early and before their response is complete. More are allowed
   * while their share of all opened streams does not exceed {@link resetShare}. CVE-2023-44487.
   */
  resets: 400,
  resetShare: 0.5,
  /** Milliseconds within which a reset is early. 1 s, because later resets are usually client timeouts. */
  rapidResetMs: 1_000,
  /** SETTINGS frames, and our acknowledgements, per interval. */
  settings: 100,
  /** PING frames per interval, beyond one for each HEADERS and DATA frame that we sent. */
  pings: 2_000,
  /** Empty DATA frames that do not end their stream, per interval. */
  emptyData: 200,
  /** Frames without effect per interval, beyond two for each stream. */
  ignoredFrames: 2_000,
  /** WINDOW_UPDATE frames per interval, beyond two for each stream and each DATA frame that we sent. */
  windowUpdates: 5_000,
  /** Body bytes per connection that wait for the peer's windows. Above this limit, streams are refused. 16 MiB. */
  queuedBytes: 16_777_216,
  /**
   * Bytes in the socket's buffer above which we stop reading from the peer. 512 KiB: enough for the headers of all
   * streams. DATA alone never exceeds this limit, because a stream queues its DATA once the socket's buffer is full.
   */
  unreadBytes: 524_288,
  /**
   * Milliseconds after which a connection without streams is closed. If it has streams, the peer is sent a PING after
   * as long without a frame. 75 s.
   */
  idleTimeoutMs: 75_000,
  /**
   * Milliseconds in which a peer must send and acknowledge SETTINGS, complete a field block, or acknowledge a PING. 20
   * s.
   */
  stallTimeoutMs: 20_000,
  /**
   * Milliseconds in which a peer must read a part of each queued response, and of the buffered output. 75 s, because
   * readers may pause.
   */
  blockedTimeoutMs: 75_000,
  /** Milliseconds in which a request body that a call waits for must be complete. 5 min. */
  requestTimeoutMs: 300_000,
  /** Milliseconds in which a peer may still send a body after its response, or anything after GOAWAY. 1 s. */
  lingerMs: 1_000,
};
