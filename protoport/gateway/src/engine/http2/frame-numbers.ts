/** Frame types (RFC 9113 §6). Frames with other types are ignored (§4.1). */
export const FrameType = {
  data: 0x0,
  headers: 0x1,
  priority: 0x2,
  rstStream: 0x3,
  settings: 0x4,
  pushPromise: 0x5,
  ping: 0x6,
  goAway: 0x7,
  windowUpdate: 0x8,
  continuation: 0x9,
} as const;

/** Frame flags (RFC 9113 §6). */
export const FrameFlag = {
  ack: 0x1,
  endStream: 0x1,
  endHeaders: 0x4,
  padded: 0x8,
  priority: 0x20,
} as const;

/** Identifiers in SETTINGS (RFC 9113 §6.5.2). Unknown settings are ignored. */
export const SettingId = {
  headerTableSize: 0x1,
  enablePush: 0x2,
  maxConcurrentStreams: 0x3,
  initialWindowSize: 0x4,
  maxFrameSize: 0x5,
  maxHeaderListSize: 0x6,
} as const;

/** Number of bytes in a frame header: length, type, flags and stream identifier (RFC 9113 §4.1). */
export const frameHeaderBytes = 9;

/** Maximum number of bytes in a frame payload that we accept or send. HTTP/2 has the same initial value (§6.5.2). */
export const maxFrameBytes = 16_384;

/** Maximum number of bytes in a flow-control window (§6.9.1). */
export const maxWindowBytes: number = 2 ** 31 - 1;

/** The initial window of each connection, and of each stream without SETTINGS_INITIAL_WINDOW_SIZE (§6.9.2). */
export const windowBytesInitial = 65_535;

/** The dynamic table size without SETTINGS_HEADER_TABLE_SIZE (§6.5.2). */
export const headerTableBytesInitial = 4096;

/** The client connection preface (§3.4). */
export const connectionPreface: Buffer = Buffer.from("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n");
