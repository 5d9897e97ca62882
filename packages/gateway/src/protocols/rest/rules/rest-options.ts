import type { DescMethod, DescService } from "@bufbuild/protobuf";
import {
  type JsonStyle,
  type ReadJsonOptions,
  readJsonOptionNames,
  type ReadServiceJsonOptions,
  type WriteJsonOptions,
} from "../../../messages/json/index.ts";
import { withCode } from "../../../errors/index.ts";
import { type OptionNames, refusePromise, refuseUnknownOptions } from "../../../options/index.ts";
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
   * Returns the options of a service, such as `{ lenient: true }`, or `{}`. Called once for each service that has rules,
   * when the rules are compiled.
   */
  readonly service?: (service: DescService) => RestServiceOptions;
  /** Called when a {@link RestServiceOptions.lenient} service has ignored something. */
  readonly onIgnored?: OnIgnored;
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

/** The names of {@link RestOptions}. */
export const restOptionNames: OptionNames<RestOptions> = {
  emptyResponse: true,
  errorRecord: true,
  json: readJsonOptionNames,
  service: true,
  onIgnored: true,
  omit: true,
  rules: true,
  ignoreUnregistered: true,
  fullyDecodeReservedExpansion: true,
};

/** Options of the REST side of one service, mostly for the clients of its former gateway. All are off by default. */
export interface RestServiceOptions {
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

const serviceDefaults: Required<RestServiceOptions> = {
  lenient: false,
  sameValueAsPath: false,
  updateMaskFromBody: false,
  streamInResults: false,
  ignoredQueryParameters: [],
  ignoreBodies: false,
  mapsInQuery: false,
  grpcMetadata: false,
  jsonClientStreams: false,
  int64Numbers: false,
};

/** {@link RestOptions} with how JSON answers are written. */
export interface RestRouteOptions extends RestOptions {
  readonly writeJson?: WriteJsonOptions;
}

/** Everything that the bindings of one service need of {@link RestRouteOptions}. */
export interface BindingOptions extends Required<RestServiceOptions> {
  readonly emptyResponse: 200 | 204;
  readonly readJson: ReadServiceJsonOptions;
  /** One object per service, or for all without options of their own: writers are compiled and kept for each object. */
  readonly writeJson: JsonStyle;
  readonly onIgnored: OnIgnored | undefined;
}

/** Returns the options of the bindings of a service. Throws as {@link serviceOptionsOf} does. */
export function bindingOptionsOf(service: DescService, options: RestRouteOptions): BindingOptions {
  const { emptyResponse = 200, json, writeJson = {}, onIgnored } = options;
  const ofService = serviceOptionsOf(service, options);
  const { lenient, int64Numbers } = ofService;
  return {
    ...ofService,
    emptyResponse,
    readJson: { ...json, unknownFields: lenient ? "ignore" : "reject" },
    writeJson: int64Numbers ? { ...writeJson, int64Numbers } : writeJson,
    onIgnored,
  };
}

/**
 * Returns what {@link RestOptions.service} returns for a service, with the defaults of the rest.
 *
 * @throws TypeError for an unknown name, or a value of a wrong type; whatever the function throws, as it is
 */
export function serviceOptionsOf(
  service: DescService,
  { service: optionsOf }: Pick<RestOptions, "service">,
): Required<RestServiceOptions> {
  if (optionsOf === undefined) return serviceDefaults;
  const owner = `rest.service of ${service.typeName}`;
  const given = refusePromise(optionsOf(service), "rest.service must return its result");
  refuseUnknownOptions(given, serviceDefaults, owner);
  const set = Object.entries(given).filter(([, value]) => value !== undefined);
  for (const [name, value] of set) requireType(name, value, owner);
  return { ...serviceDefaults, ...Object.fromEntries(set) };
}

// A function or "false" in the place of a boolean would turn a check off.
function requireType(name: string, value: unknown, owner: string): void {
  const isList = name === "ignoredQueryParameters";
  if (isList ? Array.isArray(value) : typeof value === "boolean") return;
  const wanted = isList ? "an array" : "a boolean";
  throw withCode(new TypeError(`${name} of ${owner} must be ${wanted}, got ${typeof value}`), "ERR_OPTIONS");
}
