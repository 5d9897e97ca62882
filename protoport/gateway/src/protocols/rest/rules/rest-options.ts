import type { DescMethod, DescService } from "@bufbuild/protobuf";
import {
  type JsonStyle,
  type ReadJsonOptions,
  readJsonOptionNames,
  type ReadServiceJsonOptions,
  type WriteJsonOptions,
} from "../../../protobuf/index.ts";
import { withCode, type OptionNames, refusePromise, refuseUnknownOptions, requireName } from "../../../http/index.ts";
import { type ErrorBody, requireErrorBody } from "./error-body.ts";
import { type ErrorForm, errorFormats } from "./error-forms.ts";
import type { ErrorRecordPolicy } from "./error-to-rest.ts";
import type { ExternalHttpRule } from "./http-rule.ts";
import { type RestProfile, restProfiles, type RestServiceOptions } from "./service-options.ts";
import { type StreamForms, streamFormsOf } from "./stream-form.ts";

/** Receives up to 16 ignored names from a request's query, up to 16 names from its body, and the total count. */
export type OnIgnored = (method: DescMethod, names: readonly string[], count: number) => void;

/** Options for REST and JSON that deviate from the standard mapping. */
export interface RestOptions {
  /** The status of a google.protobuf.Empty response. 204 has no body, and 200 has the body `{}`. Default 200. */
  readonly emptyResponse?: 200 | 204;
  /**
   * A preset for the clients or the API of another gateway. The profile applies to errors, and to services without a
   * separate profile. Default `"strict"`.
   */
  readonly profile?: RestProfile;
  /** The format for errors. An error's code determines the HTTP status. Defaults to the profile's format. */
  readonly errors?: ErrorForm;
  /** The template of each error's JSON. Excludes {@link errors} and {@link errorRecord}. */
  readonly errorBody?: ErrorBody;
  /** Returns each error's record and status. Replaces {@link errors}. */
  readonly errorRecord?: ErrorRecordPolicy;
  /**
   * The content type for JSON responses and errors, except streams and problem details. The type is `application/json`
   * or ends in `+json`. Defaults to the profile's content type. Requests may have any JSON content type.
   */
  readonly contentType?: string;
  /**
   * Whether a Server-Sent Events stream ends with an `end` event, so that pages do not reconnect. Default `true`, or
   * `false` if the error format is `"google"`, because clients for Google's APIs expect only messages.
   */
  readonly endEvent?: boolean;
  /** Options for reading JSON in the RPC protocols and on REST. On REST, `lenient` decides about unknown fields. */
  readonly json?: ReadJsonOptions;
  /**
   * Returns a service's options, such as `{ lenient: true }`, or `{}`. Called once for each service with rules, when
   * the rules are compiled.
   */
  readonly service?: (service: DescService) => RestServiceOptions;
  /** Called when a {@link RestServiceOptions.lenient} service has ignored names in a request. */
  readonly onIgnored?: OnIgnored;
  /** The selectors of RPCs with a rule that are excluded from REST: `package.Service.Method`. */
  readonly omit?: readonly string[];
  /** Rules that replace the annotations of RPCs, as in a service config. */
  readonly rules?: readonly ExternalHttpRule[];
  /**
   * Ignores {@link rules} for RPCs that are not registered, for example a service config's mixins. A selector that
   * names an unknown RPC in a registered service is rejected in any case.
   */
  readonly ignoreUnregistered?: boolean;
  /**
   * Also decodes `%2F` in path variables with several segments, like `fully_decode_reserved_expansion` in
   * google.api.Http.
   */
  readonly fullyDecodeReservedExpansion?: boolean;
}

/** The {@link RestOptions} names. */
export const restOptionNames: OptionNames<RestOptions> = {
  emptyResponse: true,
  profile: true,
  errors: true,
  errorBody: true,
  errorRecord: true,
  contentType: true,
  endEvent: true,
  json: readJsonOptionNames,
  service: true,
  onIgnored: true,
  omit: true,
  rules: true,
  ignoreUnregistered: true,
  fullyDecodeReservedExpansion: true,
};

const serviceDefaults: Required<RestServiceOptions> = {
  profile: "strict",
  lenient: false,
  sameValueAsPath: false,
  updateMaskFromBody: false,
  streamInResults: false,
  arrayStreams: false,
  eventStreams: false,
  ignoredQueryParameters: [],
  partialResponses: false,
  ignoreBodies: false,
  mapsInQuery: false,
  structsInQuery: false,
  goDurations: false,
  protobufBodies: false,
  prettyJson: false,
  grpcMetadata: false,
  jsonClientStreams: false,
  int64Numbers: false,
};

/** {@link RestOptions}, and the options for writing JSON responses. */
export interface RestRouteOptions extends RestOptions {
  readonly writeJson?: WriteJsonOptions;
}

/** The options that one service's bindings use. */
export interface BindingOptions extends Required<RestServiceOptions> {
  readonly emptyResponse: 200 | 204;
  readonly errors: ErrorForm;
  /** The content type for JSON that is not a stream. */
  readonly contentType: string;
  /** The response stream's formats. */
  readonly streamForms: StreamForms;
  /** Whether fields with default values are written. */
  readonly emitsImplicit: boolean;
  readonly readJson: ReadServiceJsonOptions;
  /** Services with default options share one object, because writers are cached per object. */
  readonly writeJson: JsonStyle;
  readonly onIgnored: OnIgnored | undefined;
}

/** Returns the options for a service's bindings. Throws the same errors as {@link serviceOptionsOf}. */
export function bindingOptionsOf(service: DescService, options: RestRouteOptions): BindingOptions {
  const { emptyResponse = 200, json, writeJson = {}, onIgnored } = options;
  const serviceOptions = serviceOptionsOf(service, options);
  const { profile, lenient, int64Numbers } = serviceOptions;
  const errors = errorFormOf(options);
  const emitsImplicit = writeJson.alwaysEmitImplicit ?? restProfiles[profile].alwaysEmitImplicit;
  const { endEvent = errors !== "google" } = options;
  return {
    ...serviceOptions,
    emptyResponse,
    errors,
    contentType: contentTypeOf(options),
    streamForms: streamFormsOf({ ...serviceOptions, errors, endEvent }),
    emitsImplicit,
    readJson: { ...json, unknownFields: lenient ? "ignore" : "reject", unknownOption: "lenient" },
    writeJson: styleOf(writeJson, int64Numbers, emitsImplicit),
    onIgnored,
  };
}

/** Returns `writeJson` itself if no option differs, because writers are compiled and cached per object. */
function styleOf(writeJson: WriteJsonOptions, int64Numbers: boolean, alwaysEmitImplicit: boolean): JsonStyle {
  const isSame = alwaysEmitImplicit === (writeJson.alwaysEmitImplicit ?? false);
  const style = isSame ? writeJson : { ...writeJson, alwaysEmitImplicit };
  return int64Numbers ? { ...style, int64Numbers } : style;
}

/**
 * Returns the error format. With `errorRecord` or `errorBody`, the format is `"status"`, in which streams mark errors
 * with `@error`.
 *
 * @throws TypeError for an unknown format or profile, an invalid `errorBody`, or another option in addition to it
 */
export function errorFormOf({
  profile = "strict",
  errors,
  errorBody,
  errorRecord,
}: Pick<RestOptions, "profile" | "errors" | "errorBody" | "errorRecord">): ErrorForm {
  requireName(restProfiles, profile, "rest.profile");
  const form = errors ?? restProfiles[profile].errors;
  requireName(errorFormats, form, "rest.errors");
  if (errorBody !== undefined) {
    const other = errors === undefined ? errorRecord && "rest.errorRecord" : "rest.errors";
    if (other !== undefined)
      throw withCode(
        new TypeError(`rest.errorBody must not be combined with ${other}; use one of them`),
        "ERR_OPTIONS",
      );
    requireErrorBody(errorBody);
  }
  return errorRecord === undefined && errorBody === undefined ? form : "status";
}

// Matches a JSON type (RFC 6839 §3.1) without parameters, because JSON has no charset (RFC 8259 §11).
const jsonType = /^application\/(?:[\w.-]+\+)?json$/;

/**
 * Returns the content type for JSON responses.
 *
 * @throws TypeError if the configured type is not a JSON type
 */
export function contentTypeOf({
  profile = "strict",
  contentType = restProfiles[profile].contentType,
}: Pick<RestOptions, "profile" | "contentType">): string {
  if (typeof contentType === "string" && jsonType.test(contentType)) return contentType;
  throw withCode(
    new TypeError(
      `rest.contentType must be application/json or application/…+json, got ${JSON.stringify(contentType)}`,
    ),
    "ERR_OPTIONS",
  );
}

/**
 * Returns a service's options from {@link RestOptions.service}, with defaults for other options.
 *
 * @throws TypeError for an unknown name or a value with the wrong type, and any error from the function
 */
export function serviceOptionsOf(
  service: DescService,
  { service: optionsOf, profile: ofAll = "strict" }: Pick<RestOptions, "service" | "profile">,
): Required<RestServiceOptions> {
  if (optionsOf === undefined) return { ...serviceDefaults, profile: ofAll, ...restProfiles[ofAll].service };
  const owner = `rest.service of ${service.typeName}`;
  const returned = refusePromise(optionsOf(service), "rest.service must be synchronous");
  refuseUnknownOptions(returned, serviceDefaults, owner);
  const set = Object.entries(returned).filter(([, value]) => value !== undefined);
  for (const [name, value] of set) requireType(name, value, owner);
  const profile = returned.profile ?? ofAll;
  return { ...serviceDefaults, ...restProfiles[profile].service, ...Object.fromEntries(set), profile };
}

// Rejects values with a wrong type. A function or the string "false" instead of a boolean would disable a check.
function requireType(name: string, value: unknown, owner: string): void {
  if (name === "profile") return requireName(restProfiles, value, `profile of ${owner}`);
  const isArray = name === "ignoredQueryParameters";
  if (isArray ? Array.isArray(value) : typeof value === "boolean") return;
  const expected = isArray ? "an array" : "a boolean";
  throw withCode(new TypeError(`${name} of ${owner} must be ${expected}, got ${typeof value}`), "ERR_OPTIONS");
}

/** Returns options with the named RPCs removed from `rules` and `omit`. @param names - the RPCs' selectors */
export function withoutRpcs<Options extends RestOptions>(options: Options, names: ReadonlySet<string>): Options {
  const { rules, omit } = options;
  return {
    ...options,
    ...(rules && { rules: rules.filter(({ selector = "" }) => !names.has(selector)) }),
    ...(omit && { omit: omit.filter((selector) => !names.has(selector)) }),
  };
}
