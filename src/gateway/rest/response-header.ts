// RFC 9110 §7.6.1 and RFC 9113 §8.2.2: these speak of the connection, never of the answer. The others are
// the gateway's to set: they describe the bytes it writes.
const notForAnswers: ReadonlySet<string> = new Set([
  "connection",
  "keep-alive",
  "proxy-connection",
  "te",
  "trailer",
  "transfer-encoding",
  "upgrade",
  "proxy-authenticate",
  "content-type",
  "content-length",
  "content-encoding",
  "host",
  "http2-settings",
]);

/**
 * Whether metadata of this name may be a header field of an answer on REST. Not those of the connection,
 * not those that describe the body, and nothing that belongs to the gRPC and Connect protocols.
 *
 * @param name - in lower case
 */
export function isRestResponseField(name: string): boolean {
  if (name.startsWith(":") || name.startsWith("grpc-") || name.startsWith("connect-")) return false;
  return !notForAnswers.has(name);
}

/** Whether a header field may have this value (RFC 9110 §5.5): a `Headers` object takes control characters too. */
export function isFieldValue(value: string): boolean {
  return !control.test(value);
}

// Of the control characters only a tab may be in a field.
// oxlint-disable-next-line no-control-regex
const control = /[\0-\x08\x0a-\x1f\x7f]/;

/**
 * The metadata of an RPC as header fields of the answer on REST: name, value, name, value, …
 *
 * Trailers become header fields too: plain HTTP clients never see a trailer. A trailer gives way to a
 * header field of the same name.
 */
export function toRestFields(header: Headers, trailer?: Headers): readonly string[] {
  const fields: string[] = [];
  for (const [name, value] of header) {
    if (isRestResponseField(name) && isFieldValue(value)) fields.push(name, value);
  }
  if (trailer === undefined) return fields;
  for (const [name, value] of trailer) {
    if (isRestResponseField(name) && isFieldValue(value) && !header.has(name)) fields.push(name, value);
  }
  return fields;
}
