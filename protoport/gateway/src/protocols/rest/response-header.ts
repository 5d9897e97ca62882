import type { HeaderFields } from "../../http/index.ts";
import { isSendable } from "../lazy-headers.ts";

// Fields that the gateway sets or interprets itself, so these fields are not copied from a handler's metadata.
const gatewayFields: ReadonlySet<string> = new Set([
  "content-encoding",
  "content-type",
  "host",
  "proxy-authenticate",
  "status",
]);

/**
 * Returns an RPC's metadata as a REST response's header fields: name, value, name, value, …
 *
 * Trailers also become header fields, because plain HTTP clients do not read trailers. A header field takes precedence
 * over a trailer with the same name.
 */
export function toRestHeader(header: Headers, trailer?: Headers): HeaderFields {
  const fields: string[] = [];
  for (const [name, value] of header) {
    if (isRestField(name) && isSendable(name, value)) fields.push(name, value);
  }
  if (trailer === undefined) return fields;
  for (const [name, value] of trailer) {
    if (isRestField(name) && isSendable(name, value) && !header.has(name)) fields.push(name, value);
  }
  return fields;
}

/**
 * Returns the HTTP status that a handler has set with the header field `Status`, like CGI programs (RFC 3875 §6.3.3).
 * Returns `undefined` without a status, or if the status does not match the call's outcome.
 *
 * @param failed - whether the call failed, so the status must be 4xx or 5xx instead of 2xx or 3xx
 */
export function statusOfHandler(header: Headers, failed: boolean): number | undefined {
  const status = header.get("status");
  return status !== null && (failed ? errorStatus : successStatus).test(status) ? Number(status) : undefined;
}

const successStatus = /^[23][0-9]{2}$/;
const errorStatus = /^[45][0-9]{2}$/;

function isRestField(name: string): boolean {
  return !name.startsWith("grpc-") && !name.startsWith("connect-") && !gatewayFields.has(name);
}
