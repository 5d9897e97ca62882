/** The scope of an HTTP/2 error: the error closes the connection or only a stream (RFC 9113 §5.4). */
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

/** An HTTP/2 error code from {@link ErrorCode}. Peers may send other codes (RFC 9113 §7). */
export type ErrorCode = (typeof ErrorCode)[keyof typeof ErrorCode];

/** Returns the name of an error code in RFC 9113, such as `ENHANCE_YOUR_CALM`. */
export function errorName(code: number): string {
  return names.get(code) ?? String(code);
}

const names: ReadonlyMap<number, string> = new Map(
  Object.entries(ErrorCode).map(([name, code]) => [code, name.replaceAll(/[A-Z]/g, "_$&").toUpperCase()]),
);
