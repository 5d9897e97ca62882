import type { DescMethod, DescService } from "@bufbuild/protobuf";
import type { JsonStyle, ReadJsonOptions, ReadServiceJsonOptions, WriteJsonOptions } from "../json/index.ts";
import type { ErrorRecordPolicy } from "./error-to-rest.ts";
import type { OutsideHttpRule } from "./http-rule.ts";

/** Reports what a lenient binding has ignored: up to 16 names each from query and body, and the count of all. */
export type OnIgnored = (method: DescMethod, names: readonly string[], count: number) => void;

/** Options of REST and JSON: how they differ from the standard mapping. */
export interface RestOptions {
  /** The status of an answer of type google.protobuf.Empty: 204 without a body, or 200 with `{}`. Default 200. */
  readonly emptyResponse?: 200 | 204;
  /** The form of an error. Default: google.rpc.Status as JSON, with the HTTP status of its code. */
  readonly errorRecord?: ErrorRecordPolicy;
  /** How JSON is read, by the RPC protocols and on REST. REST has a rule of its own for unknown fields. */
  readonly json?: ReadJsonOptions;
  /**
   * Selects services that ignore what others refuse: unknown query parameters, JSON fields and enum value names, and
   * fields that the path sets. What is ignored never has an effect.
   */
  readonly lenient?: (service: DescService) => boolean;
  /** Called when a lenient service has ignored something. */
  readonly onIgnored?: OnIgnored;
  /**
   * Selects services whose bodies may repeat a field of the path, as happens when a resource is sent back the way it
   * was read (AIP-134). A different value is refused, even where `lenient`.
   */
  readonly sameValueAsPath?: (service: DescService) => boolean;
  /**
   * Selects services whose PATCH requests without an update mask get one from the body's fields, as in grpc-gateway.
   */
  readonly updateMaskFromBody?: (service: DescService) => boolean;
  /** Selects services whose streams wrap messages as `{"result": …}`, errors as `{"error": …}`, like grpc-gateway. */
  readonly streamInResults?: (service: DescService) => boolean;
  /**
   * Returns the query parameters that a service ignores: names, and prefixes with `*`, such as `["utm_*", "key"]`. A
   * parameter that names a field of the request is never ignored. The price: a client that misspells a parameter so that
   * it has such a prefix is not told.
   */
  readonly ignoredQueryParameters?: (service: DescService) => readonly string[];
  /**
   * Selects services that ignore the body of a request whose rule has none, as peers do. It is not read, and has no
   * effect. The price: a client that thinks it said something in such a body is not told.
   */
  readonly ignoreBodies?: (service: DescService) => boolean;
  /**
   * Selects services whose queries may set entries of maps, as in grpc-gateway: `labels[color]=red`, where the values
   * have a text form. An entry is set once. The price: such URLs mean something to this gateway and its peer alone, and
   * few generators of clients know how OpenAPI describes them.
   */
  readonly mapsInQuery?: (service: DescService) => boolean;
  /**
   * Selects services whose header fields have the names of grpc-gateway too. A handler finds `Grpc-Metadata-Name` as
   * `name`, unless the request has that field itself; what its answer has is sent as `Grpc-Metadata-Name` as well, and its
   * trailers as trailer fields `Grpc-Trailer-Name` where the client says `TE: trailers`. Not credentials, cookies, and what
   * describes the message or its way. The price: a proxy that strips a field of clients, such as `X-User`, must strip it
   * under both names, and all metadata is sent twice.
   */
  readonly grpcMetadata?: (service: DescService) => boolean;
  /**
   * Selects services that take streams of clients as `application/json` too: JSON values one after another, with or
   * without white space between them, as grpc-gateway does, or one array of them, as Envoy does. A body that begins with
   * `[` is an array, unless the messages may be arrays themselves. The price: a stream that is cut between two values
   * looks complete, as one of lines does, and errors name the message instead of the line.
   */
  readonly jsonClientStreams?: (service: DescService) => boolean;
  /**
   * Selects services whose enum values may lack the name of their enum, where that is the prefix of all: `RED` for
   * `COLOR_RED` of the enum `Color`. Answers have the short names. The price: clients that know the whole names alone do
   * not understand the answers, and a value has two URLs.
   */
  readonly shortEnumNames?: (service: DescService) => boolean;
  /**
   * Selects services whose answers have 64-bit integers as JSON numbers. Those beyond 2^53, which most clients would
   * misread, stay strings. The price: the type of a value depends on its size, so clients must take both.
   */
  readonly int64Numbers?: (service: DescService) => boolean;
  /**
   * Selects services that take a form (`application/x-www-form-urlencoded`) in the place of a JSON body that is a message,
   * by the rules of a query: `a.b=1&c=x&c=y`, at most 1,000 fields. The price: a page of any origin may send a form
   * without a preflight (Fetch §2.2.2), so where a browser adds the credential, such as a cookie, `admit` must check
   * `Origin` or `Sec-Fetch-Site`.
   */
  readonly forms?: (service: DescService) => boolean;
  /**
   * Selects services that take `multipart/form-data` in the place of a JSON body that is a message, or of a
   * google.api.HttpBody: one part is that file, the others are fields by the rules of a query, at most 1,000 parts. The
   * name of the file is not passed on. The price: as with {@link forms}, a page of any origin may send one; without it,
   * a google.api.HttpBody refuses this one type of bytes.
   */
  readonly multipartForms?: (service: DescService) => boolean;
  /** Leaves RPCs that have a rule out of REST, by selector: `package.Service.Method`. */
  readonly omit?: readonly string[];
  /** Rules from outside the definition. Each replaces the annotation of its RPC. */
  readonly rules?: readonly OutsideHttpRule[];
  /**
   * Ignores those of the {@link rules} whose RPCs are not registered here, such as those of the mixins of a service
   * config. A selector that names no RPC of a service that is registered here is refused in any case.
   */
  readonly ignoreUnregistered?: boolean;
  /** Decodes `%2F` in path variables of several segments too; `fully_decode_reserved_expansion` of google.api.Http. */
  readonly fullyDecodeReservedExpansion?: boolean;
}

/** {@link RestOptions} with how JSON answers are written. */
export interface RestRouteOptions extends RestOptions {
  readonly writeJson?: WriteJsonOptions;
}

/** {@link RestRouteOptions} as they are for the bindings of one service. */
export interface BindingOptions {
  readonly emptyResponse: 200 | 204;
  readonly readJson: ReadServiceJsonOptions;
  readonly writeJson: JsonStyle;
  readonly shortEnumNames: boolean;
  readonly lenient: boolean;
  readonly sameValueAsPath: boolean;
  readonly updateMaskFromBody: boolean;
  readonly streamInResults: boolean;
  readonly ignoredQueryParameters: readonly string[];
  readonly ignoreBodies: boolean;
  readonly mapsInQuery: boolean;
  readonly grpcMetadata: boolean;
  readonly jsonClientStreams: boolean;
  readonly forms: boolean;
  readonly multipartForms: boolean;
  readonly onIgnored: OnIgnored | undefined;
}

/** Returns the options of the bindings of a service. */
export function bindingOptionsOf(service: DescService, options: RestRouteOptions): BindingOptions {
  const lenient = options.lenient?.(service) === true;
  const shortEnumNames = options.shortEnumNames?.(service) === true;
  const int64Numbers = options.int64Numbers?.(service) === true;
  const { writeJson = {} } = options;
  return {
    emptyResponse: options.emptyResponse ?? 200,
    readJson: { ...options.json, unknownFields: lenient ? "ignore" : "reject", shortEnumNames },
    // The same object for all services without these options, because writers are compiled for each.
    writeJson: shortEnumNames || int64Numbers ? { ...writeJson, shortEnumNames, int64Numbers } : writeJson,
    shortEnumNames,
    lenient,
    sameValueAsPath: options.sameValueAsPath?.(service) === true,
    updateMaskFromBody: options.updateMaskFromBody?.(service) === true,
    streamInResults: options.streamInResults?.(service) === true,
    ignoredQueryParameters: options.ignoredQueryParameters?.(service) ?? [],
    ignoreBodies: options.ignoreBodies?.(service) === true,
    mapsInQuery: options.mapsInQuery?.(service) === true,
    grpcMetadata: options.grpcMetadata?.(service) === true,
    jsonClientStreams: options.jsonClientStreams?.(service) === true,
    forms: options.forms?.(service) === true,
    multipartForms: options.multipartForms?.(service) === true,
    onIgnored: options.onIgnored,
  };
}
