import { type HeaderFields, readHeaderField } from "../../http/index.ts";
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

/**
 * Adds security header fields to a response that is a google.api.HttpBody with a content type. The fields keep browsers
 * from running the body's bytes as a page or script from this origin, for which browsers may have stored credentials.
 * The handler's Content-Security-Policy is sent instead of the sandbox.
 */
export function withSecurityFields(fields: HeaderFields): HeaderFields {
  const contentType = readHeaderField(fields, "content-type");
  if (contentType === null) return fields;
  const needsSandbox = readHeaderField(fields, policyField) === null && mayRunScripts(contentType);
  const others = fields.filter((_, at) => fields[at - (at % 2)]?.toLowerCase() !== sniffingField);
  return [...others, sniffingField, "nosniff", ...(needsSandbox ? sandboxed : noFields)];
}

/**
 * Returns whether a browser may run scripts in a document with this type. PDF is excluded because browsers do not show
 * PDF in a sandbox. Every type that ends in `+xml`, such as SVG, can contain scripts. If commas join several types,
 * browsers use the last type (Fetch, "extract a MIME type").
 */
function mayRunScripts(contentType: string): boolean {
  const [sent = ""] = contentType.split(";");
  // Browsers ignore spaces around a content type.
  const type = sent.trim().toLowerCase();
  return contentType.includes(",") || type.endsWith("+xml") || !typesWithoutScripts.test(type);
}

const typesWithoutScripts = /^(?:application\/pdf|(?:image|audio|video|font)\/[\w.+-]+)$/;

const policyField = "content-security-policy";
const sniffingField = "x-content-type-options";
const sandboxed: HeaderFields = [policyField, "sandbox"];
const noFields: HeaderFields = [];
