import { Metadata } from "@grpc/grpc-js";
import { notAdded, notSentAsMetadata } from "@plantstore/http";
import { LazyHeaders } from "@plantstore/protocols";

/**
 * The fields that grpc-js does not pass to handlers either, and those by which the Connect protocol describes a call.
 */
const notPassedOn: ReadonlySet<string> = new Set([
  ...notSentAsMetadata,
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
  // The fields as they were received: Headers would be created for them.
  const fields = header instanceof LazyHeaders ? header.fields : [...header].flat();
  for (let at = 0; at < fields.length; at += 2) {
    const name = (fields[at] ?? "").toLowerCase();
    // HTTP/2 pseudo-header fields begin with a colon.
    if (name.startsWith(":") || notPassedOn.has(name)) continue;
    try {
      addField(metadata, name, fields[at + 1] ?? "");
    } catch {
      // Metadata refuses the name or the value.
    }
  }
  return metadata;
}

function addField(metadata: Metadata, name: string, value: string): void {
  if (!name.endsWith("-bin")) {
    const before = metadata.get(name);
    return metadata.set(name, before.length === 0 ? value : `${String(before[0])}, ${value}`);
  }
  // Several values with one name are joined by commas, which base64 does not contain.
  for (const part of value.split(",")) metadata.add(name, Buffer.from(part.trim(), "base64"));
}

/** Adds a response's metadata to its header or trailer. Omits fields that the protocols set themselves. */
export function appendMetadata(headers: Headers, metadata: Metadata | null | undefined): void {
  for (const [name, values] of Object.entries(metadata?.toHttp2Headers() ?? {})) {
    if (notAdded.has(name) || name.startsWith("grpc-")) continue;
    for (const value of [values].flat()) headers.append(name, String(value));
  }
}
