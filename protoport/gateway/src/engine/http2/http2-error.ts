import { ErrorCode } from "../../http/index.ts";

/** An error that closes the connection with a GOAWAY (RFC 9113 §5.4.1). */
export class ConnectionError extends Error {
  readonly code: ErrorCode;

  constructor(code: ErrorCode, message: string) {
    super(message);
    this.name = "ConnectionError";
    this.code = code;
  }
}

/** Returns a PROTOCOL_ERROR for a frame that is not allowed (RFC 9113 §7). */
export function protocolError(message: string): ConnectionError {
  return new ConnectionError(ErrorCode.protocolError, message);
}

/** Returns a FRAME_SIZE_ERROR for a frame with a wrong length (RFC 9113 §4.2). */
export function frameSizeError(frame: string): ConnectionError {
  return new ConnectionError(ErrorCode.frameSizeError, `the ${frame} frame has a wrong length`);
}
