import type { ConnectError } from "@connectrpc/connect";
import { type Exchange, fieldsNotSetByGrpcMetadata, type HeaderFields, readHeaderField } from "../../http/index.ts";
import { isSendable } from "../lazy-headers.ts";
import type { Callee } from "../rpc.ts";
import { customMetadata } from "../shared/error-metadata.ts";
import { toRestHeader } from "./response-header.ts";
import type { ErrorResponse, RestFailure } from "./rules/index.ts";

/** An error as a REST response. */
export interface RestErrorResponse {
  readonly httpStatus: number;
  readonly fields: HeaderFields;
  readonly body: Uint8Array;
}

/**
 * Returns an error as a REST response. The body is the error record, and the error's metadata are header fields.
 *
 * @param otherFields - further response header fields
 * @param grpcMetadata - whether metadata is also sent as `Grpc-Metadata-Name`
 */
export function toErrorResponse(
  writeErrorRecord: (error: ConnectError, failure: RestFailure) => ErrorResponse,
  error: ConnectError,
  failure: RestFailure,
  otherFields: HeaderFields,
  grpcMetadata: boolean,
): RestErrorResponse {
  const { httpStatus, contentType, body } = writeErrorRecord(error, failure);
  const metadata = toRestHeader(customMetadata(error));
  const metadataToSend = grpcMetadata ? withResponseMetadata(metadata) : metadata;
  return { httpStatus, fields: ["content-type", contentType, ...otherFields, ...metadataToSend], body };
}

/** The prefixes of the header fields in which grpc-gateway clients send and read gRPC metadata. */
const metadataPrefix = "grpc-metadata-";
const trailerPrefix = "grpc-trailer-";

/**
 * Returns whether a field may also be sent with the prefix. Fields that identify the caller are excluded, because
 * `admit` and proxies check only fields without the prefix. RPC protocol fields are excluded, and fields that describe
 * the message, the connection or the route. Cookies are excluded because a page's scripts must not read `HttpOnly`
 * cookies (RFC 6265 §4.1.2.6).
 */
function isMetadataName(name: string): boolean {
  return !fieldsNotSetByGrpcMetadata.has(name) && !excludedNames.test(name);
}

const excludedNames =
  /^(?:grpc-|connect-|content-|proxy-|sec-|x-forwarded-|(?:authorization|cookie|set-cookie|forwarded|origin|via|x-real-ip)$)/;

/** Adds `name` for each `Grpc-Metadata-Name`, unless the request has a field `name` or `name` identifies the caller. */
export function withRequestMetadata(fields: HeaderFields, { isIdentityField }: Callee): HeaderFields {
  const added: string[] = [];
  for (let at = 0; at < fields.length; at += 2) {
    const sentName = fields[at]?.toLowerCase() ?? "";
    const name = sentName.startsWith(metadataPrefix) ? sentName.slice(metadataPrefix.length) : "";
    if (name === "" || !isMetadataName(name) || isIdentityField?.(name) === true) continue;
    if (readHeaderField(fields, name) === null) added.push(name, fields[at + 1] ?? "");
  }
  return added.length === 0 ? fields : [...fields, ...added];
}

/** Returns a response's metadata. Adds a field `Grpc-Metadata-Name` for each field that is not excluded. */
export function withResponseMetadata(fields: HeaderFields): HeaderFields {
  const prefixed: string[] = [];
  for (let at = 0; at < fields.length; at += 2) {
    const name = fields[at] ?? "";
    if (isMetadataName(name)) prefixed.push(metadataPrefix + name, fields[at + 1] ?? "");
  }
  return [...fields, ...prefixed];
}

/** A response's trailer section, and the header field that announces the trailer section. */
interface RestTrailer {
  readonly announcement: HeaderFields;
  readonly fields: HeaderFields;
}

/**
 * Returns an RPC's trailer as trailer fields `Grpc-Trailer-Name`. Returns `undefined` if there are no fields, or the
 * client did not send `TE: trailers` (RFC 9110 §6.5.1).
 */
export function restTrailerOf(exchange: Exchange, trailer: Headers): RestTrailer | undefined {
  const { httpMethod, httpVersion } = exchange;
  // Responses to HEAD, over HTTP/1.0 and over Fetch cannot have trailers. Over Fetch, the HTTP version is unknown.
  const isUnsupported = httpMethod === "HEAD" || httpVersion === "1.0" || httpVersion === undefined;
  if (isUnsupported || !acceptsTrailers.test(exchange.get("te") ?? "")) return undefined;
  const fields = [...trailer].flatMap(([name, value]) =>
    isSendable(name, value) && isMetadataName(name) ? [trailerPrefix + name, value] : [],
  );
  const names = fields.filter((_, at) => at % 2 === 0);
  return names.length === 0 ? undefined : { announcement: ["trailer", names.join(", ")], fields };
}

const acceptsTrailers = /(?:^|,)[\t ]*trailers[\t ]*(?:[,;]|$)/i;
