import { Code } from "@connectrpc/connect";
import { clientGone, ErrorCode, errorName, HttpProblem } from "../exchange/index.ts";

/** Who has sent the RST_STREAM that ended a stream; node's HTTP/2 does not report it. */
export type ResetSender = "client" | "server" | "unknown";

/** What an error code shows: the client has left, one of both broke HTTP/2, or the client takes no more. */
type Cause = "left" | "client" | "server" | "excess";

interface Causes {
  /** When the client, or a proxy in front of us, has sent the code. */
  readonly received: Cause;
  /** When we have sent it. */
  readonly sent: Cause;
}

/**
 * The error codes of RFC 9113 §7. Envoy resets with INTERNAL_ERROR the streams of clients that have left, and a client
 * that has forgotten a stream may respond with STREAM_CLOSED to frames that were on their way.
 */
const causes: Readonly<Record<ErrorCode, Causes>> = {
  [ErrorCode.noError]: { received: "left", sent: "left" },
  [ErrorCode.protocolError]: { received: "server", sent: "client" },
  [ErrorCode.internalError]: { received: "left", sent: "server" },
  [ErrorCode.flowControlError]: { received: "server", sent: "client" },
  [ErrorCode.settingsTimeout]: { received: "server", sent: "client" },
  [ErrorCode.streamClosed]: { received: "left", sent: "client" },
  [ErrorCode.frameSizeError]: { received: "server", sent: "client" },
  [ErrorCode.refusedStream]: { received: "left", sent: "left" },
  [ErrorCode.cancel]: { received: "left", sent: "left" },
  [ErrorCode.compressionError]: { received: "server", sent: "client" },
  [ErrorCode.connectError]: { received: "left", sent: "left" },
  [ErrorCode.enhanceYourCalm]: { received: "excess", sent: "excess" },
  [ErrorCode.inadequateSecurity]: { received: "server", sent: "client" },
  [ErrorCode.http11Required]: { received: "left", sent: "left" },
};

/**
 * Returns why a stream was reset: by an unknown code, as by CANCEL (RFC 9113 §7). Its client gets no response; code and
 * status are those that logs and metrics have for the call.
 */
export function resetProblem(rstCode: number | undefined, sender: ResetSender): HttpProblem {
  switch (causeOf(rstCode, sender)) {
    case "client":
      return new HttpProblem("ERR_HTTP_INVALID", `HTTP/2 error caused by the client: ${errorName(rstCode ?? 0)}`);
    case "server":
      return new HttpProblem("ERR_CLIENT_GONE", `HTTP/2 error caused by the server: ${errorName(rstCode ?? 0)}`, {
        httpStatus: 500,
        code: Code.Internal,
      });
    case "excess":
      return new HttpProblem("ERR_CLIENT_GONE", "the client accepts no more of the response", {
        httpStatus: 429,
        code: Code.ResourceExhausted,
      });
    default:
      return clientGone();
  }
}

function causeOf(rstCode: number | undefined, sender: ResetSender): Cause {
  const known: Readonly<Record<number, Causes>> = causes;
  const { received, sent } = known[rstCode ?? ErrorCode.cancel] ?? causes[ErrorCode.cancel];
  if (sender === "client") return received;
  // Errors of framing are found by node in what clients send; INTERNAL_ERROR is sent by proxies.
  return sender === "unknown" && rstCode === ErrorCode.internalError ? received : sent;
}
