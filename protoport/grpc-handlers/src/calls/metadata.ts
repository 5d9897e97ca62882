import { Metadata } from "@grpc/grpc-js";
import { reservedResponseFields, fieldsNotSentAsMetadata } from "@protoport/gateway/exchange";
import { LazyHeaders } from "@protoport/gateway/forward";

// The header fields that handlers do not get: those that grpc-js omits, and the Connect protocol's own fields.
const excludedFields: ReadonlySet<string> = new Set([
  ...fieldsNotSentAsMetadata,
  "accept-encoding",
  "content-type",
  "connect-protocol-version",
  "connect-timeout-ms",
  "expect",
  "grpc-accept-encoding",
  "grpc-encoding",
  "grpc-timeout",
  "host",
]);

/** Returns a request's metadata. Omits fields that gRPC does not allow, such as a value that is not ASCII. */
export function toMetadata(header: Headers): Metadata {
  const metadata = new Metadata();
  // The received fields are read directly, because reading them from `Headers` would create a `Headers` object.
  const fields = header instanceof LazyHeaders ? header.fields : [...header].flat();
  for (let at = 0; at < fields.length; at += 2) {
    const name = (fields[at] ?? "").toLowerCase();
    // HTTP/2 pseudo-header fields begin with a colon.
    if (name.startsWith(":") || excludedFields.has(name)) continue;
    try {
      addField(metadata, name, fields[at + 1] ?? "");
    } catch {
      // `Metadata` rejects the field's name or value.
    }
  }
  return metadata;
}

function addField(metadata: Metadata, name: string, value: string): void {
  if (!name.endsWith("-bin")) {
    const before = metadata.get(name);
    return metadata.set(name, before.length === 0 ? value : `${String(before[0])}, ${value}`);
  }
  // Several values for the same name are joined by commas, which base64 does not contain.
  for (const part of value.split(",")) metadata.add(name, Buffer.from(part, "base64"));
}

/** The only "grpc-" field that handlers can set: the client's delay before a retry (gRFC A6). */
const pushback = "grpc-retry-pushback-ms";

/** Adds a response's metadata to the response's header or trailer. Omits fields that the protocols set themselves. */
export function appendMetadata(headers: Headers, metadata: Metadata | null | undefined): void {
  for (const [name, values] of Object.entries(metadata?.toHttp2Headers() ?? {})) {
    if (reservedResponseFields.has(name) || (name.startsWith("grpc-") && name !== pushback)) continue;
    for (const value of [values].flat()) headers.append(name, String(value));
  }
}
