import { isSendable } from "../lazy-headers.ts";

// The gateway sets these itself: they describe the bytes it writes, or the host it answers for.
const gatewayFields: ReadonlySet<string> = new Set(["content-encoding", "content-type", "host", "proxy-authenticate"]);

/**
 * Returns the metadata of an RPC as header fields of a REST answer: name, value, name, value, …
 *
 * Trailers become header fields too, because plain HTTP clients never see a trailer. A header field wins over a trailer
 * of the same name.
 */
export function toRestFields(header: Headers, trailer?: Headers): readonly string[] {
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

function isRestField(name: string): boolean {
  return !name.startsWith("grpc-") && !name.startsWith("connect-") && !gatewayFields.has(name);
}
