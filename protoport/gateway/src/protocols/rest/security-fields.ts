import { type HeaderFields, readHeaderField } from "../../http/index.ts";

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
