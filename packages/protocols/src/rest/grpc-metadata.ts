import { type Exchange, type HeaderFields, notPrefixed, readHeaderField } from "@plantstore/http";
import { isSendable } from "../shared/lazy-headers.ts";

/** The prefixes that grpc-gateway clients use for the gRPC metadata. */
const metadataPrefix = "grpc-metadata-";
const trailerPrefix = "grpc-trailer-";

/**
 * Returns whether a field may also be sent with the prefix. Excluded are fields that identify the caller, because
 * `admit` and proxies check only the field without the prefix; fields that describe the message, its connection or its
 * route; and RPC protocol fields. Cookies are excluded because a page's scripts must not read `HttpOnly` ones (RFC 6265
 * §4.1.2.6).
 */
function isMetadata(name: string): boolean {
  return !notPrefixed.has(name) && !excludedNames.test(name);
}

const excludedNames =
  /^(?:grpc-|connect-|content-|proxy-|sec-|x-forwarded-|(?:authorization|cookie|set-cookie|forwarded|origin|via|x-real-ip)$)/;

/**
 * Returns a request's header fields, adding each `Grpc-Metadata-Name` also as `name`, unless the request already has
 * that field.
 */
export function withRequestMetadata(fields: HeaderFields): HeaderFields {
  const added: string[] = [];
  for (let at = 0; at < fields.length; at += 2) {
    const sentName = fields[at]?.toLowerCase() ?? "";
    const name = sentName.startsWith(metadataPrefix) ? sentName.slice(metadataPrefix.length) : "";
    if (name === "" || !isMetadata(name) || readHeaderField(fields, name) !== null) continue;
    added.push(name, fields[at + 1] ?? "");
  }
  return added.length === 0 ? fields : [...fields, ...added];
}

/** Returns a response's metadata, adding each field also as `Grpc-Metadata-Name` unless it is excluded. */
export function withResponseMetadata(fields: HeaderFields): HeaderFields {
  const prefixed: string[] = [];
  for (let at = 0; at < fields.length; at += 2) {
    const name = fields[at] ?? "";
    if (isMetadata(name)) prefixed.push(metadataPrefix + name, fields[at + 1] ?? "");
  }
  return [...fields, ...prefixed];
}

/** A response's trailer section, and the header field that announces it. */
export interface RestTrailer {
  readonly announcement: HeaderFields;
  readonly fields: HeaderFields;
}

/**
 * Returns an RPC's trailer as trailer fields `Grpc-Trailer-Name`, or `undefined` if there are none, or the client did
 * not send `TE: trailers` (RFC 9110 §6.5.1).
 */
export function restTrailerOf(exchange: Exchange, trailer: Headers): RestTrailer | undefined {
  const { httpMethod, httpVersion } = exchange;
  // Responses to HEAD, over HTTP/1.0, and over Fetch, which has no version, cannot have trailers.
  const isUnsupported = httpMethod === "HEAD" || httpVersion === "1.0" || httpVersion === undefined;
  if (isUnsupported || !acceptsTrailers.test(exchange.get("te") ?? "")) return undefined;
  const fields = [...trailer].flatMap(([name, value]) =>
    isSendable(name, value) && isMetadata(name) ? [trailerPrefix + name, value] : [],
  );
  const names = fields.filter((_, at) => at % 2 === 0);
  return names.length === 0 ? undefined : { announcement: ["trailer", names.join(", ")], fields };
}

const acceptsTrailers = /(?:^|,)[\t ]*trailers[\t ]*(?:[,;]|$)/i;
