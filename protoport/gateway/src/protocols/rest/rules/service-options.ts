import type { ErrorForm } from "./error-forms.ts";

/**
 * The gateway or API whose REST interface clients expect:
 *
 * - `"strict"`: this gateway's rules, with every option off
 * - `"google"`: Google's APIs, for clients generated for them
 * - `"grpc-gateway"`, `"envoy"`: grpc-gateway, and Envoy's transcoder with `ignore_unknown_query_parameters`
 * - `"a2a"`: the HTTP+JSON binding of the Agent2Agent protocol, version 1
 */
export type RestProfile = "strict" | "google" | "grpc-gateway" | "envoy" | "a2a";

/** REST options for one service, mostly for compatibility with another gateway. All options are off by default. */
export interface RestServiceOptions {
  /** The profile for options that the service does not set. Defaults to `profile` in `rest`. */
  readonly profile?: RestProfile;
  /**
   * Ignores unknown query parameters, unknown fields and enum names in JSON bodies, and fields that the path sets.
   * Ignored values have no effect. Still refuses an unknown enum name in the query, and a query parameter such as
   * `size.max` if `size` is not a message.
   */
  readonly lenient?: boolean;
  /**
   * Also accepts a path field in the body if both values are the same. Clients that send back a resource repeat path
   * fields (AIP-134). A different value is refused, even with `lenient`.
   */
  readonly sameValueAsPath?: boolean;
  /** Sets a missing update mask in a PATCH request to the body fields, as grpc-gateway does. */
  readonly updateMaskFromBody?: boolean;
  /** Wraps the stream messages as `{"result": …}` and errors as `{"error": …}`, like grpc-gateway. */
  readonly streamInResults?: boolean;
  /** Sends a stream as one JSON array unless `Accept` names another format, like Google's APIs and Envoy. */
  readonly arrayStreams?: boolean;
  /** Sends a stream as Server-Sent Events unless `Accept` names another format. Overrides {@link arrayStreams}. */
  readonly eventStreams?: boolean;
  /**
   * Names and prefixes of query parameters to ignore, such as `["utm_*", "key"]`. A parameter that names a request
   * field is never ignored. Drawback: a misspelled parameter with an ignored prefix is silently ignored.
   */
  readonly ignoredQueryParameters?: readonly string[];
  /**
   * Sends only the response fields that the request selects with `?$fields=`, `?fields=` or the header field
   * `X-Goog-FieldMask` (AIP-157). In a selection such as `a.b,c(d,e)`, `*` stands for all fields. A parameter `fields`
   * that names a request field sets this field.
   */
  readonly partialResponses?: boolean;
  /**
   * Ignores the body of a request for a rule without a body, as other gateways do. The body is not read. Drawback: a
   * client that puts data into an ignored body gets no error.
   */
  readonly ignoreBodies?: boolean;
  /**
   * Accepts map entries in queries, such as `labels[color]=red`, if the values have a text form. Each entry may be set
   * once. Drawback: only this gateway and grpc-gateway accept map entries in URLs, and few client generators support
   * the OpenAPI description of map entries.
   */
  readonly mapsInQuery?: boolean;
  /**
   * Accepts percent-encoded JSON in the query for google.protobuf.Struct, Value and ListValue, like grpc-gateway. An
   * example before encoding is `filter={"size":1}`.
   */
  readonly structsInQuery?: boolean;
  /** Accepts Go durations in the query, such as `5m` and `13h0m0s`, like grpc-gateway. */
  readonly goDurations?: boolean;
  /**
   * Also accepts and sends single messages in the binary protobuf format, like grpc-gateway's `ProtoMarshaller`. The
   * content types are `application/x-protobuf`, `application/protobuf` and `application/octet-stream`. A response has
   * the type that `Accept` names, or otherwise the request's type. Errors are a google.rpc.Status. The path overrides
   * the body. Has no effect on streams, `google.api.HttpBody`, and bodies that are not a message.
   */
  readonly protobufBodies?: boolean;
  /**
   * Sends indented JSON for `Accept: application/json+pretty` and for a parameter `pretty`, like grpc-gateway's
   * documentation. A parameter `pretty` that names a request field sets this field.
   */
  readonly prettyJson?: boolean;
  /**
   * Also uses grpc-gateway's header names. A handler gets `Grpc-Metadata-Name` as `name`, unless the request has a
   * field `name`. Response metadata is also sent as `Grpc-Metadata-Name`, and trailers as trailer fields
   * `Grpc-Trailer-Name` if the client sends `TE: trailers`. Credentials, cookies, and fields that describe the message
   * or its route are excluded. Drawback: a proxy that removes a client's field, such as `X-User`, must remove both
   * names. All metadata is sent twice.
   */
  readonly grpcMetadata?: boolean;
  /**
   * Also accepts client streams as `application/json`. The body is consecutive JSON values, as in grpc-gateway, or one
   * array of values, as in Envoy. White space between consecutive values is optional. A body that starts with `[` is an
   * array, unless messages may be arrays. Drawback: a stream that is truncated between two values looks complete, like
   * a stream of lines. Errors contain the message's number instead of the line's number.
   */
  readonly jsonClientStreams?: boolean;
  /**
   * Writes 64-bit integers as JSON numbers. Integers beyond 2^53 stay strings, because most clients would misread
   * larger numbers. Drawback: a value's type depends on its size, so clients must accept strings and numbers.
   */
  readonly int64Numbers?: boolean;
}

/** A profile's options. The user's option with the same name overrides a profile's option. */
interface ProfileOptions {
  readonly service: Omit<RestServiceOptions, "profile">;
  readonly errors: ErrorForm;
  /** The content type for responses and errors. */
  readonly contentType: string;
  /** Whether fields with default values are written, like `alwaysEmitImplicit` in `jsonOptions`. */
  readonly alwaysEmitImplicit: boolean;
}

const json = "application/json";

/** The profiles by name. */
export const restProfiles: Readonly<Record<RestProfile, ProfileOptions>> = {
  strict: { service: {}, errors: "status", contentType: json, alwaysEmitImplicit: false },
  google: {
    service: {
      sameValueAsPath: true,
      arrayStreams: true,
      partialResponses: true,
      // The system parameters for Google's APIs, except access_token, which must not be in a URL.
      ignoredQueryParameters: ["alt", "$alt", "prettyPrint", "$prettyPrint", "key", "$.xgafv", "x-goog-*"],
    },
    errors: "google",
    contentType: json,
    alwaysEmitImplicit: false,
  },
  "grpc-gateway": {
    service: {
      lenient: true,
      ignoreBodies: true,
      mapsInQuery: true,
      structsInQuery: true,
      goDurations: true,
      protobufBodies: true,
      prettyJson: true,
      grpcMetadata: true,
      streamInResults: true,
      jsonClientStreams: true,
      updateMaskFromBody: true,
    },
    errors: "status",
    contentType: json,
    alwaysEmitImplicit: true,
  },
  envoy: {
    service: { lenient: true, ignoreBodies: true, jsonClientStreams: true, arrayStreams: true },
    errors: "status",
    contentType: json,
    alwaysEmitImplicit: false,
  },
  a2a: {
    // In A2A, unknown fields are ignored (§5.7), and clients repeat the path fields in the body.
    service: { lenient: true, sameValueAsPath: true, eventStreams: true },
    errors: "google",
    // The content type in A2A §11.1.
    contentType: "application/a2a+json",
    alwaysEmitImplicit: false,
  },
};
