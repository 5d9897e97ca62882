/**
 * What a header field describes, by name in lower case. The rules about fields that no program may set, add or forward
 * select from this table, so that a new name is added once.
 *
 * - `connection`: the connection in HTTP/1.1; not allowed in HTTP/2 (RFC 9113 §8.2.2)
 * - `hop`: what two neighbours negotiate (RFC 9110 §7.6.1), also in HTTP/2
 * - `length`, `content`: the body of one message (RFC 9110 §8)
 * - `representation`: what else is said about the body, or about what it represents (RFC 9110 §8, RFC 6266, RFC 9530)
 * - `date`: when the message was made (RFC 9110 §6.6.1)
 * - `request`: what a client says about one request (RFC 9110 §7.2, §10.1.1)
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

/** The name of a field that has a kind. */
export type FieldName = keyof typeof fieldKinds;

/** What a field describes. */
export type FieldKind = (typeof fieldKinds)[FieldName];

/** The fields that a rule is about: all of some kinds, and single names. */
export interface FieldRule {
  readonly kinds: readonly FieldKind[];
  readonly names?: readonly FieldName[];
  /** The names of these kinds that the rule is not about. */
  readonly except?: readonly FieldName[];
}

/** Returns the names, in lower case, that a rule is about. Made for constants: each call builds a set. */
export function fieldNames({ kinds, names = [], except = [] }: FieldRule): ReadonlySet<string> {
  const all = Object.keys(fieldKinds) as FieldName[];
  const ofKinds = all.filter((name) => kinds.includes(fieldKinds[name]) && !except.includes(name));
  return new Set<string>([...ofKinds, ...names]);
}

/** What HTTP/2 does not allow in any section (RFC 9113 §8.2.2). */
export const notInHttp2: ReadonlySet<string> = fieldNames({ kinds: ["connection"] });

/** What the HTTP/1.1 writer sets itself: the fields of the connection and of the framing (RFC 9112 §6). */
export const setByHttp1: ReadonlySet<string> = fieldNames({
  kinds: ["connection", "length"],
  except: ["proxy-connection"],
});

/**
 * What a hook may not add to a response: a second field would invalidate the first (RFC 9110 §5.3), and a client over
 * HTTP/2 may reset a stream whose response has one of a connection.
 */
export const notAdded: ReadonlySet<string> = fieldNames({
  kinds: ["connection", "hop", "length", "content", "date"],
});

/** What is not sent as the metadata of a call: the connection, and what the carrier sets. */
export const notSent: ReadonlySet<string> = fieldNames({ kinds: ["connection", "hop", "length", "date"] });

/** What a gRPC client sets itself (gRPC over HTTP/2, "Request-Headers"). */
export const setByGrpcClient: ReadonlySet<string> = fieldNames({
  kinds: ["connection", "hop", "length"],
  names: ["content-type", "host"],
});

/** What fetch sets itself. Browsers drop such fields of a program, and node's fetch fails. */
export const setByFetch: ReadonlySet<string> = fieldNames({
  kinds: ["connection", "hop", "length", "request"],
  except: ["proxy-connection"],
});

/** What a proxy neither forwards nor lets a program set: the next message has its own. */
export const notForwarded: ReadonlySet<string> = fieldNames({
  kinds: ["connection", "hop", "length", "content"],
  names: ["host"],
});

/** What `Grpc-Metadata-Name` cannot say: what describes the connection or the request itself. */
export const notPrefixed: ReadonlySet<string> = fieldNames({ kinds: ["connection", "hop", "request"] });

/** What a mounted gateway does not take over from its host's response: it describes another body. */
export const notFromHost: ReadonlySet<string> = fieldNames({
  kinds: ["length", "content", "representation"],
  names: ["trailer", "transfer-encoding"],
});
