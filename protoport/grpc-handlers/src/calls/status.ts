import { type Metadata, type ServerErrorResponse, status, type StatusObject } from "@grpc/grpc-js";
import { Code, ConnectError } from "@connectrpc/connect";
import { findTrailerError } from "@connectrpc/connect/protocol-grpc";
import { toFault } from "@protoport/gateway/forward";
import { appendMetadata } from "./metadata.ts";

/** The status with which a call ends, as grpc-js interceptors get it. */
export interface CallStatus extends Pick<StatusObject, "code" | "details"> {
  readonly metadata?: Metadata | null;
  /** The fault that the status hides from the client. */
  readonly fault?: unknown;
}

/** The status for a call that succeeded, with its trailer. */
export function okStatus(metadata: Metadata | null | undefined): CallStatus {
  return { code: status.OK, details: "OK", metadata: metadata ?? null };
}

/** The failure that is reported to `onFault` if a handler throws an exception. */
export const handlerFailure: Parameters<typeof toFault>[1] = {
  errorCode: "ERR_HANDLER_FAILED",
  what: "a handler of grpc-js failed",
};

/** The status message that grpc-js sends for an exception. */
const unknownText = "Unknown error";

/**
 * Returns the status for an error that a handler has thrown, called back or emitted. As in grpc-js, an error with an
 * integer `code` is a status for the client.
 *
 * @param trailer - replaces the error's metadata
 * @param exposesMessages - whether the client gets an error's message if the error has no code
 */
export function statusOf(thrown: unknown, trailer: Metadata | undefined, exposesMessages: boolean): CallStatus {
  const error = (typeof thrown === "object" && thrown !== null ? thrown : {}) as Partial<ServerErrorResponse>;
  const { code, details, message = "" } = error;
  const metadata = trailer ?? error.metadata ?? null;
  if (typeof code === "number" && code !== status.OK && code in status) {
    return { code, details: typeof details === "string" ? details : message, metadata };
  }
  return { code: status.UNKNOWN, details: exposesMessages && message ? message : unknownText, metadata, fault: thrown };
}

/** Returns the error for a status that is not OK. Reports its fault to the gateway's `onFault`. */
export function statusToConnectError(end: CallStatus): ConnectError {
  const { code, details, metadata, fault } = end;
  const header = new Headers();
  appendMetadata(header, metadata);
  // gRPC and Connect codes have the same numbers, but Connect has no code for OK.
  const number: number = code;
  const known = number in Code ? number : Code.Unknown;
  const error = new ConnectError(details, known, header, undefined, fault);
  error.details = detailsOf(metadata);
  return "fault" in end ? toFault(error, handlerFailure) : error;
}

// `grpc-status-details-bin` contains a google.rpc.Status. Returns no details if the field is malformed.
function detailsOf(metadata: Metadata | null | undefined): ConnectError["details"] {
  const [bytes] = metadata?.get("grpc-status-details-bin") ?? [];
  if (!(bytes instanceof Uint8Array)) return [];
  try {
    const field = Buffer.from(bytes).toString("base64");
    return findTrailerError(new Headers({ "grpc-status-details-bin": field }))?.details ?? [];
  } catch {
    return [];
  }
}
