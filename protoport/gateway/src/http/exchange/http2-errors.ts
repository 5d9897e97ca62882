import { clientGoneProblem, HttpProblem } from "./http-problem.ts";

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

/** The sender of the RST_STREAM that closed a stream. node:http2 does not report the sender. */
type ResetSender = "client" | "server" | "unknown";

/** The cause of a reset: a cancelled call, an HTTP/2 violation of one side, or a client that refuses further data. */
type Cause = "cancelled" | "client" | "server" | "excess";

interface Causes {
  /** The cause if the client or a proxy in front of this server has sent the code. */
  readonly received: Cause;
  /** The cause if this server has sent the code. */
  readonly sent: Cause;
}

/**
 * The causes for the error codes in RFC 9113 §7. Envoy resets streams with INTERNAL_ERROR when a client disconnects. A
 * client that has closed a stream may respond with STREAM_CLOSED to frames in transit.
 */
const causes: Readonly<Record<ErrorCode, Causes>> = {
  [ErrorCode.noError]: { received: "cancelled", sent: "cancelled" },
  [ErrorCode.protocolError]: { received: "server", sent: "client" },
  [ErrorCode.internalError]: { received: "cancelled", sent: "server" },
  [ErrorCode.flowControlError]: { received: "server", sent: "client" },
  [ErrorCode.settingsTimeout]: { received: "server", sent: "client" },
  [ErrorCode.streamClosed]: { received: "cancelled", sent: "client" },
  [ErrorCode.frameSizeError]: { received: "server", sent: "client" },
  [ErrorCode.refusedStream]: { received: "cancelled", sent: "cancelled" },
  [ErrorCode.cancel]: { received: "cancelled", sent: "cancelled" },
  [ErrorCode.compressionError]: { received: "server", sent: "client" },
  [ErrorCode.connectError]: { received: "cancelled", sent: "cancelled" },
  [ErrorCode.enhanceYourCalm]: { received: "excess", sent: "excess" },
  [ErrorCode.inadequateSecurity]: { received: "server", sent: "client" },
  [ErrorCode.http11Required]: { received: "cancelled", sent: "cancelled" },
};

/** Returns why a stream was reset, for logs and call metrics. An unknown code counts as CANCEL (RFC 9113 §7). */
export function resetProblem(rstCode: number | undefined, sender: ResetSender): HttpProblem {
  switch (resetCauseOf(rstCode, sender)) {
    case "client":
      return new HttpProblem("ERR_HTTP_INVALID", `HTTP/2 error caused by the client: ${errorName(rstCode ?? 0)}`);
    case "server":
      return new HttpProblem("ERR_CLIENT_GONE", `HTTP/2 error caused by the server: ${errorName(rstCode ?? 0)}`, {
        httpStatus: 500,
        code: "Internal",
      });
    case "excess":
      return new HttpProblem("ERR_CLIENT_GONE", "the client stopped reading the response", {
        httpStatus: 429,
        code: "ResourceExhausted",
      });
    default:
      return clientGoneProblem();
  }
}

function resetCauseOf(rstCode: number | undefined, sender: ResetSender): Cause {
  const knownCauses: Readonly<Record<number, Causes>> = causes;
  const { received, sent } = knownCauses[rstCode ?? ErrorCode.cancel] ?? causes[ErrorCode.cancel];
  if (sender === "client") return received;
  // If the sender is unknown, INTERNAL_ERROR counts as received from a proxy. Other codes count as sent, because node
  // sends error codes for invalid client frames.
  return sender === "unknown" && rstCode === ErrorCode.internalError ? received : sent;
}
