import type { HeaderFields } from "../../exchange/index.ts";
import { isSendable } from "../shared/lazy-headers.ts";

// The gateway sets these itself: they describe the bytes it writes, or the host it answers for.
const gatewayFields: ReadonlySet<string> = new Set([
  "content-encoding",
  "content-type",
  "host",
  "proxy-authenticate",
  "status",
]);

/**
 * Returns the metadata of an RPC as header fields of a REST answer: name, value, name, value, …
 *
 * Trailers become header fields too, because plain HTTP clients never see a trailer. A header field wins over a trailer
 * of the same name.
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
 * Returns the HTTP status that a handler has chosen with the field `Status`, as programs behind CGI do (RFC 3875
 * §6.3.3); `undefined` if there is none, or one that does not fit the outcome of the call.
 *
 * @param failed - whether the call has failed: an error may have 4xx or 5xx, any other answer 2xx or 3xx
 */
export function chosenStatus(header: Headers, failed: boolean): number | undefined {
  const status = header.get("status");
  return status !== null && (failed ? errorStatus : successStatus).test(status) ? Number(status) : undefined;
}

const successStatus = /^[23][0-9]{2}$/;
const errorStatus = /^[45][0-9]{2}$/;

function isRestField(name: string): boolean {
  return !name.startsWith("grpc-") && !name.startsWith("connect-") && !gatewayFields.has(name);
}
