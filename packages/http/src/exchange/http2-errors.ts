/** What an HTTP/2 error terminates (RFC 9113 §5.4). */
export type ErrorScope = "connection" | "stream";

/** HTTP/2 error codes (RFC 9113 §7). */
export const ErrorCode = {
  noError: 0x0,
  protocolError: 0x1,
  internalError: 0x2,
  flowControlError: 0x3,
  settingsTimeout: 0x4,
  streamClosed: 0x5,
  frameSizeError: 0x6,
  refusedStream: 0x7,
  cancel: 0x8,
  compressionError: 0x9,
  connectError: 0xa,
  enhanceYourCalm: 0xb,
  inadequateSecurity: 0xc,
  http11Required: 0xd,
} as const;

/** One of our {@link ErrorCode}s. Peers may send others (RFC 9113 §7). */
export type ErrorCode = (typeof ErrorCode)[keyof typeof ErrorCode];

/** Returns an error code's name in RFC 9113, such as `ENHANCE_YOUR_CALM`. */
export function errorName(code: number): string {
  return names.get(code) ?? String(code);
}

const names: ReadonlyMap<number, string> = new Map(
  Object.entries(ErrorCode).map(([name, code]) => [code, name.replaceAll(/[A-Z]/g, "_$&").toUpperCase()]),
);
