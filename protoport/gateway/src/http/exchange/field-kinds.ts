/**
 * The kind of each header field, by name in lower case. The rules for fields that a program must not set, add or
 * forward select fields by kind, so that a new name is added in one place.
 *
 * - `connection`: the connection in HTTP/1.1; not allowed in HTTP/2 (RFC 9113 §8.2.2)
 * - `hop`: hop-by-hop negotiation (RFC 9110 §7.6.1), which HTTP/2 also has
 * - `length`, `content`: the body of a message (RFC 9110 §8)
 * - `representation`: other properties of the body or the resource (RFC 9110 §8, RFC 6266, RFC 9530)
 * - `date`: when the message was created (RFC 9110 §6.6.1)
 * - `request`: properties of a request, set by the client (RFC 9110 §7.2, §10.1.1)
 */
const fieldKinds = {
  connection: "connection",
  "keep-alive": "connection",
  "proxy-connection": "connection",
  "transfer-encoding": "connection",
  upgrade: "connection",
  "http2-settings": "hop",
  te: "hop",
  trailer: "hop",
  "content-length": "length",
  "content-encoding": "content",
  "content-type": "content",
  "accept-ranges": "representation",
  "content-digest": "representation",
  "content-disposition": "representation",
  "content-language": "representation",
  "content-location": "representation",
  "content-range": "representation",
  etag: "representation",
  "last-modified": "representation",
  "repr-digest": "representation",
  date: "date",
  expect: "request",
  host: "request",
} as const;

/** A field name in {@link fieldKinds}. */
export type FieldName = keyof typeof fieldKinds;

/** The kind of a header field, such as `connection` or `date`. */
export type FieldKind = (typeof fieldKinds)[FieldName];

/** Selects all fields with the given kinds, and single fields by name. */
export interface FieldRule {
  readonly kinds: readonly FieldKind[];
  readonly names?: readonly FieldName[];
  /** Names that are not selected although their kind is selected. */
  readonly except?: readonly FieldName[];
}

/** Returns the lower-case names that a rule selects. For constants only, because each call builds a set. */
/* @__NO_SIDE_EFFECTS__ */
export function fieldNames({ kinds, names = [], except = [] }: FieldRule): ReadonlySet<string> {
  const allNames = Object.keys(fieldKinds) as FieldName[];
  const selectedNames = allNames.filter((name) => kinds.includes(fieldKinds[name]) && !except.includes(name));
  return new Set<string>([...selectedNames, ...names]);
}

/** The fields that HTTP/2 does not allow in any section (RFC 9113 §8.2.2). */
export const connectionSpecificFields: ReadonlySet<string> = fieldNames({ kinds: ["connection"] });

/** The fields that the HTTP/1.1 writer sets itself: connection and framing fields (RFC 9112 §6). */
export const fieldsSetByHttp1: ReadonlySet<string> = fieldNames({
  kinds: ["connection", "length"],
  except: ["proxy-connection"],
});

/**
 * The fields that a hook must not add to a response. A second field would invalidate the first (RFC 9110 §5.3), and an
 * HTTP/2 client may reset a stream with a connection-specific field.
 */
export const reservedResponseFields: ReadonlySet<string> = fieldNames({
  kinds: ["connection", "hop", "length", "content", "date"],
});

/** The fields that neither call metadata nor endpoints set: connection fields, and fields that the HTTP server sets. */
export const fieldsNotSentAsMetadata: ReadonlySet<string> = fieldNames({
  kinds: ["connection", "hop", "length", "date"],
});

/** The fields that a gRPC client sets itself (gRPC over HTTP/2, "Request-Headers"). */
export const fieldsSetByGrpcClient: ReadonlySet<string> = fieldNames({
  kinds: ["connection", "hop", "length"],
  names: ["content-type", "host"],
});

/** The fields that fetch sets itself. If a program sets one of them, browsers drop it, and node's fetch fails. */
export const fieldsSetByFetch: ReadonlySet<string> = fieldNames({
  kinds: ["connection", "hop", "length", "request"],
  except: ["proxy-connection"],
});

/** The fields that a proxy neither forwards nor lets a program set, because the forwarded message gets new values. */
export const fieldsNotForwarded: ReadonlySet<string> = fieldNames({
  kinds: ["connection", "hop", "length", "content"],
  names: ["host"],
});

/** The fields that `Grpc-Metadata-Name` must not set: fields that describe the connection or the request. */
export const fieldsNotSetByGrpcMetadata: ReadonlySet<string> = fieldNames({ kinds: ["connection", "hop", "request"] });

/** The fields that a mounted gateway does not copy from the framework, because they describe the framework's body. */
export const fieldsNotCopiedFromFramework: ReadonlySet<string> = fieldNames({
  kinds: ["length", "content", "representation"],
  names: ["trailer", "transfer-encoding"],
});
