/** Limits on the memory and work that a peer can cause on a connection. */
export type Http2Limits = Readonly<typeof defaultHttp2Limits>;

/** Number of bytes in a field block that all peers accept: nghttp2 closes the connection after a longer field. */
export const acceptedBlockBytes: number = 64 * 1024;

/** The default {@link Http2Limits}. A peer that exceeds a limit per interval is disconnected with ENHANCE_YOUR_CALM. */
export const defaultHttp2Limits = {
  /** Maximum number of concurrent streams. Further streams are refused. */
  concurrentStreams: 256,
  /** Maximum number of bytes in a field list (RFC 9113 §6.5.2): 16 KiB. Requests with larger lists get status 431. */
  headerListBytes: 16_384,
  /** Maximum number of bytes in all frames of an encoded field block: 64 KiB, four times the list size. */
  headerBlockBytes: 65_536,
  /** Maximum number of CONTINUATION frames in a field block. A block with the maximum size requires fewer. */
  continuations: 16,
  /** Receive window per stream, in bytes: 256 KiB. A message with this size arrives in one round trip. */
  streamWindowBytes: 262_144,
  /** Receive window per connection, in bytes: 1 MiB. */
  connectionWindowBytes: 1_048_576,
  /** Length of the interval for limits per interval, in milliseconds: 10 s. */
  intervalMs: 10_000,
  /**
   * Maximum number of streams per interval that fail, or are reset early and before the response head
   * (CVE-2023-44487). Further resets are allowed up to the share {@link resetShare} of all opened streams.
   */
  resets: 400,
  /**
   * As {@link resets}, but for streams that are reset between the response head and the response's end. Callers leave
   * server streams in this way, and a proxy's connection has many callers.
   */
  resetsAfterHead: 4_000,
  resetShare: 0.5,
  /** Milliseconds after opening in which a reset counts as early: 1 s. Later resets are usually client timeouts. */
  rapidResetMs: 1_000,
  /** Maximum number of SETTINGS frames per interval, including acknowledgements. */
  settings: 100,
  /** Maximum number of PING frames per interval, plus one for each HEADERS and DATA frame that we sent. */
  pings: 2_000,
  /** Maximum number of empty DATA frames per interval, plus two for each stream and each DATA frame with bytes. */
  emptyData: 200,
  /** Maximum number of ignored frames per interval, plus two for each stream. */
  ignoredFrames: 2_000,
  /** Maximum number of WINDOW_UPDATE frames per interval, plus two for each stream and each DATA frame that we sent. */
  windowUpdates: 5_000,
  /** Maximum number of body bytes that wait for the peer's windows: 16 MiB. Above the limit, streams are refused. */
  queuedBytes: 16_777_216,
  /**
   * Number of bytes in the socket's buffer above which we stop reading from the peer: 512 KiB, which fit the response
   * headers of all streams. DATA alone never exceeds the limit, because streams queue DATA while the buffer is full.
   */
  unreadBytes: 524_288,
  /** Milliseconds until a connection without streams is closed, or a silent peer with streams gets a PING: 75 s. */
  idleTimeoutMs: 75_000,
  /** Milliseconds in which a peer must exchange SETTINGS, complete a field block, or acknowledge a PING: 20 s. */
  stallTimeoutMs: 20_000,
  /** Milliseconds after which a peer that reads nothing of a queued response, or of the buffered output, is disconnected: 75 s. */
  blockedTimeoutMs: 75_000,
  /** Milliseconds in which a client must complete a request body for which a call waits: 5 min. */
  requestTimeoutMs: 300_000,
  /** Milliseconds in which a peer may still send a body after the response, or frames after GOAWAY: 1 s. */
  lingerMs: 1_000,
};
