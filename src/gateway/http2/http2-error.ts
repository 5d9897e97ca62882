/** The error codes of RFC 9113 §7. */
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

/** One of our {@link ErrorCode}s; peers may send others (RFC 9113 §7). */
export type ErrorCode = (typeof ErrorCode)[keyof typeof ErrorCode];

/** Returns the name of an error code in RFC 9113, such as `ENHANCE_YOUR_CALM`. */
export function errorName(code: number): string {
  return names.get(code) ?? String(code);
}

const names: ReadonlyMap<number, string> = new Map(
  Object.entries(ErrorCode).map(([name, code]) => [code, name.replaceAll(/[A-Z]/g, "_$&").toUpperCase()]),
);

/** An error that ends the connection: GOAWAY with this code (RFC 9113 §5.4.1). */
export class ConnectionError extends Error {
  readonly code: ErrorCode;

  constructor(code: ErrorCode, message: string) {
    super(message);
    this.name = "ConnectionError";
    this.code = code;
  }
}

/** Returns a PROTOCOL_ERROR: the peer sent something that is not allowed (RFC 9113 §7). */
export function protocolError(message: string): ConnectionError {
  return new ConnectionError(ErrorCode.protocolError, message);
}

/** Returns a FRAME_SIZE_ERROR: the length is wrong for the type of the frame (RFC 9113 §4.2). */
export function frameSizeError(frame: string): ConnectionError {
  return new ConnectionError(ErrorCode.frameSizeError, `${frame} has a wrong size`);
}
