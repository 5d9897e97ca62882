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

/** One of the {@link ErrorCode}s; peers may send others, which mean no more than an error (RFC 9113 §7). */
export type ErrorCode = (typeof ErrorCode)[keyof typeof ErrorCode];

/** What ends a connection: GOAWAY with this code (RFC 9113 §5.4.1). */
export class ConnectionError extends Error {
  readonly code: ErrorCode;

  constructor(code: ErrorCode, message: string) {
    super(message);
    this.name = "ConnectionError";
    this.code = code;
  }
}

/** The commonest of them (RFC 9113 §7): what was sent has no place here. */
export function protocolError(message: string): ConnectionError {
  return new ConnectionError(ErrorCode.protocolError, message);
}

/** A frame whose length its type does not allow (RFC 9113 §4.2). */
export function frameSizeError(frame: string): ConnectionError {
  return new ConnectionError(ErrorCode.frameSizeError, `${frame} has a wrong size`);
}
