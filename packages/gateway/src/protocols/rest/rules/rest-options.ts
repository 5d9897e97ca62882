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
import { type ErrorForm, errorFormats } from "./error-forms.ts";
import type { ErrorRecordPolicy } from "./error-to-rest.ts";
import type { OutsideHttpRule } from "./http-rule.ts";
import { restProfiles } from "./rest-profiles.ts";
import type { RestProfile, RestServiceOptions } from "./service-options.ts";
import { type StreamForms, streamFormsOf } from "./stream-form.ts";

/** Reports what a lenient binding has ignored: up to 16 names each from query and body, and the count of all. */
export type OnIgnored = (method: DescMethod, names: readonly string[], count: number) => void;

/** Options of REST and JSON: how they differ from the standard mapping. */
export interface RestOptions {
  /** The status of an answer of type google.protobuf.Empty: 204 without a body, or 200 with `{}`. Default 200. */
  readonly emptyResponse?: 200 | 204;
  /**
   * The options that the clients of another interface rely on: of errors, and of each service that names no other profile.
   * Default `"strict"`.
   */
  readonly profile?: RestProfile;
  /** The form of errors, with the HTTP status of their code. Default: that of the profile, `"status"` without one. */
  readonly errors?: ErrorForm;
  /** Decides on the record and the status of each error; takes the place of {@link errors}. */
  readonly errorRecord?: ErrorRecordPolicy;
  /**
   * Whether a stream of Server-Sent Events ends with an `end` event, so that pages do not reconnect. Default `true`, with
   * errors of the form `"google"` `false`: clients of Google's APIs expect nothing but messages.
   */
  readonly endEvent?: boolean;
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
  profile: true,
  errors: true,
  errorRecord: true,
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
  readonly errors: ErrorForm;
  readonly streamForms: StreamForms;
  /** Whether fields that are zero are written. */
  readonly emitsImplicit: boolean;
  readonly readJson: ReadServiceJsonOptions;
  /** One object per service, or for all without options of their own: writers are compiled and kept for each object. */
  readonly writeJson: JsonStyle;
  readonly onIgnored: OnIgnored | undefined;
}

/** Returns the options of the bindings of a service. Throws as {@link serviceOptionsOf} does. */
export function bindingOptionsOf(service: DescService, options: RestRouteOptions): BindingOptions {
  const { emptyResponse = 200, json, writeJson = {}, onIgnored } = options;
  const ofService = serviceOptionsOf(service, options);
  const { profile, lenient, int64Numbers, streamInResults, arrayStreams } = ofService;
  const errors = errorFormOf(options);
  const emitsImplicit = writeJson.alwaysEmitImplicit ?? restProfiles[profile].alwaysEmitImplicit;
  const { endEvent = errors !== "google" } = options;
  return {
    ...ofService,
    emptyResponse,
    errors,
    streamForms: streamFormsOf({ streamInResults, arrayStreams, errors, endEvent }),
    emitsImplicit,
    readJson: { ...json, unknownFields: lenient ? "ignore" : "reject" },
    writeJson: styleOf(writeJson, int64Numbers, emitsImplicit),
    onIgnored,
  };
}

/** Returns the same object if nothing differs from it: writers are compiled and kept for each. */
function styleOf(writeJson: WriteJsonOptions, int64Numbers: boolean, alwaysEmitImplicit: boolean): JsonStyle {
  const isSame = alwaysEmitImplicit === (writeJson.alwaysEmitImplicit ?? false);
  const style = isSame ? writeJson : { ...writeJson, alwaysEmitImplicit };
  return int64Numbers ? { ...style, int64Numbers } : style;
}

/**
 * Returns the form of errors: `"status"` if the program writes their records itself, which then mark their streams too.
 *
 * @throws TypeError for an unknown form or profile
 */
export function errorFormOf({
  profile = "strict",
  errors,
  errorRecord,
}: Pick<RestOptions, "profile" | "errors" | "errorRecord">): ErrorForm {
  requireName(restProfiles, profile, "rest.profile");
  const form = errors ?? restProfiles[profile].errors;
  requireName(errorFormats, form, "rest.errors");
  return errorRecord === undefined ? form : "status";
}

function requireName(table: object, name: unknown, option: string): void {
  if (typeof name === "string" && Object.hasOwn(table, name)) return;
  const known = Object.keys(table).join(", ");
  throw withCode(new TypeError(`${option} must be one of ${known}, got ${JSON.stringify(name)}`), "ERR_OPTIONS");
}

/**
 * Returns what {@link RestOptions.service} returns for a service, with the defaults of the rest.
 *
 * @throws TypeError for an unknown name, or a value of a wrong type; whatever the function throws, as it is
 */
export function serviceOptionsOf(
  service: DescService,
  { service: optionsOf, profile: ofAll = "strict" }: Pick<RestOptions, "service" | "profile">,
): Required<RestServiceOptions> {
  if (optionsOf === undefined) return { ...serviceDefaults, profile: ofAll, ...restProfiles[ofAll].service };
  const owner = `rest.service of ${service.typeName}`;
  const given = refusePromise(optionsOf(service), "rest.service must return its result");
  refuseUnknownOptions(given, serviceDefaults, owner);
  const set = Object.entries(given).filter(([, value]) => value !== undefined);
  for (const [name, value] of set) requireType(name, value, owner);
  const profile = given.profile ?? ofAll;
  return { ...serviceDefaults, ...restProfiles[profile].service, ...Object.fromEntries(set), profile };
}

// A function or "false" in the place of a boolean would turn a check off.
function requireType(name: string, value: unknown, owner: string): void {
  if (name === "profile") return requireName(restProfiles, value, `profile of ${owner}`);
  const isList = name === "ignoredQueryParameters";
  if (isList ? Array.isArray(value) : typeof value === "boolean") return;
  const wanted = isList ? "an array" : "a boolean";
  throw withCode(new TypeError(`${name} of ${owner} must be ${wanted}, got ${typeof value}`), "ERR_OPTIONS");
}
