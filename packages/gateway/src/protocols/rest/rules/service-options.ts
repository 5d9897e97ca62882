/**
 * What the clients of a REST interface were made for:
 *
 * - `"strict"`: the gateway's own rules, with every option off
 * - `"google"`: Google's APIs, as for clients that were generated for them
 * - `"grpc-gateway"`, `"envoy"`: grpc-gateway, and Envoy's transcoder with `ignore_unknown_query_parameters`
 */
export type RestProfile = "strict" | "google" | "grpc-gateway" | "envoy";

/** Options of the REST side of one service, mostly for the clients of its former gateway. All are off by default. */
export interface RestServiceOptions {
  /** The options that are not given here. Default: `profile` of `rest`. */
  readonly profile?: RestProfile;
  /**
   * Ignores what is otherwise refused: unknown query parameters, JSON fields and enum value names, and fields that the
   * path sets. What is ignored never has an effect.
   */
  readonly lenient?: boolean;
  /**
   * Accepts a field of the path in the body again, as happens when a resource is sent back the way it was read
   * (AIP-134). A different value is refused, even where `lenient`.
   */
  readonly sameValueAsPath?: boolean;
  /** Gives a PATCH request without an update mask one of the body's fields, as grpc-gateway does. */
  readonly updateMaskFromBody?: boolean;
  /** Wraps the messages of streams as `{"result": …}` and errors as `{"error": …}`, like grpc-gateway. */
  readonly streamInResults?: boolean;
  /** Sends a stream as one JSON array unless `Accept` names another form, as Google's APIs and Envoy do. */
  readonly arrayStreams?: boolean;
  /**
   * The query parameters to ignore: names, and prefixes with `*`, such as `["utm_*", "key"]`. A parameter that names a
   * field of the request is never ignored. The price: a client that misspells a parameter so that it has such a prefix is
   * not told.
   */
  readonly ignoredQueryParameters?: readonly string[];
  /**
   * Ignores the body of a request whose rule has none, as peers do. It is not read, and has no effect. The price: a
   * client that thinks it said something in such a body is not told.
   */
  readonly ignoreBodies?: boolean;
  /**
   * Accepts entries of maps in queries, as grpc-gateway does: `labels[color]=red`, where the values have a text form. An
   * entry is set once. The price: such URLs mean something to this gateway and its peer alone, and few generators of
   * clients know how OpenAPI describes them.
   */
  readonly mapsInQuery?: boolean;
  /**
   * Names header fields as grpc-gateway does, too. A handler finds `Grpc-Metadata-Name` as `name`, unless the request has
   * that field itself; what its answer has is sent as `Grpc-Metadata-Name` as well, and its trailers as trailer fields
   * `Grpc-Trailer-Name` where the client says `TE: trailers`. Not credentials, cookies, and what describes the message or
   * its way. The price: a proxy that strips a field of clients, such as `X-User`, must strip it under both names, and all
   * metadata is sent twice.
   */
  readonly grpcMetadata?: boolean;
  /**
   * Accepts streams of clients as `application/json` too: JSON values one after another, with or without white space
   * between them, as grpc-gateway does, or one array of them, as Envoy does. A body that begins with `[` is an array,
   * unless the messages may be arrays themselves. The price: a stream that is cut between two values looks complete, as
   * one of lines does, and errors name the message instead of the line.
   */
  readonly jsonClientStreams?: boolean;
  /**
   * Writes 64-bit integers as JSON numbers. Those beyond 2^53, which most clients would misread, stay strings. The price:
   * the type of a value depends on its size, so clients must accept both.
   */
  readonly int64Numbers?: boolean;
}
