import type { ConnectError } from "@connectrpc/connect";
import { setTrailerStatus } from "@connectrpc/connect/protocol-grpc";
import { type Exchange, type HeaderFields, prepareHeaderFields } from "../../http/index.ts";
import { headerFieldsToSend, LazyHeaders } from "../lazy-headers.ts";
import type { Rpc } from "../rpc.ts";
import type { EnvelopedHeader } from "../shared/enveloped-wire.ts";
import { appendCustomMetadata, withoutMetadata } from "../shared/error-metadata.ts";
import { negotiateEncodings } from "../shared/negotiation.ts";
import { readGrpcTimeout } from "../shared/timeouts.ts";

/** The trailer of a successful response to which the handler has added no fields. */
export const statusOk: HeaderFields = prepareHeaderFields("grpc-status", "0");

/** Returns a success's trailer. Metadata cannot replace the status (gRPC over HTTP/2, "Custom-Metadata"). */
export function okTrailer(trailer: Headers): HeaderFields {
  if (trailer instanceof LazyHeaders && trailer.isPristine) return trailer.fields;
  const isOk = trailer.get(statusName) === "0" && !trailer.has(messageName) && !trailer.has(detailsName);
  if (isOk) return headerFieldsToSend(trailer, statusOk);
  const metadata = new Headers(trailer);
  for (const name of [statusName, messageName, detailsName]) metadata.delete(name);
  return headerFieldsToSend(metadata, statusOk);
}

/** Returns a response trailer with the error's status, or with status OK without an error. */
export function endTrailer(trailer: Headers, error: ConnectError | undefined): HeaderFields {
  if (error === undefined) return okTrailer(trailer);
  setStatus(trailer, error);
  return headerFieldsToSend(trailer, statusOk);
}

/** Writes an error as a single header section, which the specification calls a Trailers-Only response. */
export function writeTrailersOnly(
  exchange: Exchange,
  header: HeaderFields,
  trailer: Headers,
  error: ConnectError,
): void {
  setStatus(trailer, error);
  exchange.respond(200, [...header, ...headerFieldsToSend(trailer, statusOk)]);
}

// Matches delay-seconds (RFC 9110 §10.2.3). A delay with five digits is more than a day, so no client waits for longer.
const delaySeconds = /^\d{1,5}$/;

/**
 * Sets the status for an error in a response's trailer, and adds the error's metadata.
 *
 * A `retry-after` field is also sent as `grpc-retry-pushback-ms` (gRFC A6), the only delay that gRPC clients honor.
 */
function setStatus(trailer: Headers, error: ConnectError): void {
  appendCustomMetadata(trailer, error);
  // The handler may have set grpc-status-details-bin itself.
  if (trailer.has(detailsName)) trailer.delete(detailsName);
  const { rawMessage } = error;
  const message = rawMessage.length > maxMessage ? `${rawMessage.slice(0, maxMessage).toWellFormed()}…` : rawMessage;
  // setTrailerStatus needs a copy without metadata. Only errors with details are copied, because copying is slow.
  if (error.details.length > 0) setTrailerStatus(trailer, withoutMetadata(error, message));
  else trailer.set(statusName, String(error.code));
  // Connect uses encodeURIComponent, but grpc-js does not decode the escapes "%3A" and "%2C".
  trailer.set(messageName, encodeURI(message));
  const retryAfter = error.metadata.get("retry-after");
  if (retryAfter === null || !delaySeconds.test(retryAfter) || trailer.has(pushback)) return;
  trailer.set(pushback, String(Number(retryAfter) * 1000));
}

/**
 * Maximum number of characters in a message, each of which takes up to 9 bytes in the trailer section, and 4 in the
 * details. Clients accept sections of 8 KiB (grpc-java) to 64 KiB.
 */
const maxMessage = 4096;

const pushback = "grpc-retry-pushback-ms";
const statusName = "grpc-status";
const messageName = "grpc-message";
const detailsName = "grpc-status-details-bin";

/** Reads the header of a gRPC or gRPC-Web call. */
export function readGrpcHeader(exchange: Exchange, { options }: Rpc): EnvelopedHeader {
  const encodings = negotiateEncodings(
    options.acceptCompression,
    exchange.get("grpc-encoding"),
    exchange.get("grpc-accept-encoding"),
    "grpc-accept-encoding",
  );
  const timeout = readGrpcTimeout(exchange.get("grpc-timeout"), options.maxTimeoutMs);
  return { encodings, timeout, encodingName: "grpc-encoding" };
}
