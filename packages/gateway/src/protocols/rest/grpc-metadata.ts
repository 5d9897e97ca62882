import { type Exchange, type HeaderFields, notPrefixed, readHeaderField } from "../../exchange/index.ts";
import { isSendable } from "../shared/lazy-headers.ts";

/** The names by which clients of grpc-gateway send and read the metadata of gRPC. */
const metadataPrefix = "grpc-metadata-";
const trailerPrefix = "grpc-trailer-";

/**
 * Returns whether a field may also have the prefix. One may not that says who calls, which `admit` and proxies judge by the
 * field itself; that describes this message, its connection or its way; or that belongs to a protocol of RPCs. Nor may
 * a cookie: scripts of a page must not read those that are `HttpOnly` (RFC 6265 §4.1.2.6).
 */
function isMetadata(name: string): boolean {
  return !notPrefixed.has(name) && !ofOthers.test(name);
}

const ofOthers =
  /^(?:grpc-|connect-|content-|proxy-|sec-|x-forwarded-|(?:authorization|cookie|set-cookie|forwarded|origin|via|x-real-ip)$)/;

/**
 * Returns the header fields of a request with each `Grpc-Metadata-Name` under the name `name` as well, unless the request
 * has that field itself.
 */
export function withRequestMetadata(fields: HeaderFields): HeaderFields {
  const added: string[] = [];
  for (let at = 0; at < fields.length; at += 2) {
    const sent = fields[at]?.toLowerCase() ?? "";
    const name = sent.startsWith(metadataPrefix) ? sent.slice(metadataPrefix.length) : "";
    if (name === "" || !isMetadata(name) || readHeaderField(fields, name) !== null) continue;
    added.push(name, fields[at + 1] ?? "");
  }
  return added.length === 0 ? fields : [...fields, ...added];
}

/** Returns the metadata of an answer, each field also as `Grpc-Metadata-Name`, except for what that cannot say. */
export function withAnswerMetadata(fields: HeaderFields): HeaderFields {
  const repeated: string[] = [];
  for (let at = 0; at < fields.length; at += 2) {
    const name = fields[at] ?? "";
    if (isMetadata(name)) repeated.push(metadataPrefix + name, fields[at + 1] ?? "");
  }
  return [...fields, ...repeated];
}

/** The trailer section of an answer, and the header field that announces it. */
export interface RestTrailer {
  readonly announcement: HeaderFields;
  readonly fields: HeaderFields;
}

/**
 * Returns the trailer of an RPC as trailer fields `Grpc-Trailer-Name`; `undefined` if there are none, or the client has
 * not said `TE: trailers` (RFC 9110 §6.5.1).
 */
export function restTrailerOf(exchange: Exchange, trailer: Headers): RestTrailer | undefined {
  const { httpMethod, httpVersion } = exchange;
  // An answer over Fetch has no trailers either.
  const hasNone = httpMethod === "HEAD" || httpVersion === "1.0" || httpVersion === undefined;
  if (hasNone || !takesTrailers.test(exchange.get("te") ?? "")) return undefined;
  const fields = [...trailer].flatMap(([name, value]) =>
    isSendable(name, value) && isMetadata(name) ? [trailerPrefix + name, value] : [],
  );
  const names = fields.filter((_, at) => at % 2 === 0);
  return names.length === 0 ? undefined : { announcement: ["trailer", names.join(", ")], fields };
}

const takesTrailers = /(?:^|,)[\t ]*trailers[\t ]*(?:[,;]|$)/i;
