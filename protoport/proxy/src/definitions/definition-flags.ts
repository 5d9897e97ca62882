import { type Flag, type ParsedFlags, readFlag, readValue, textsOf } from "@protoport/command-line";
import { oneOf, type SettingType } from "@protoport/command-line/settings";
import type { VisibilityOptions } from "@protoport/gateway/descriptors";
import type { OperationIds } from "@protoport/gateway/openapi";
import type { RestOptions, RestProfile, RestServiceOptions } from "@protoport/gateway/rest";

/** The names of a type's boolean members. */
type BooleansOf<Options> = {
  [Name in keyof Options]-?: NonNullable<Options[Name]> extends boolean ? Name : never;
}[keyof Options];

/** An option name that `--rest` accepts, from `rest` or from the object that `rest.service` returns. */
export type SwitchName = BooleansOf<RestServiceOptions> | "fullyDecodeReservedExpansion";

const switches: Readonly<Record<SwitchName, true>> = {
  lenient: true,
  sameValueAsPath: true,
  updateMaskFromBody: true,
  partialResponses: true,
  streamInResults: true,
  arrayStreams: true,
  eventStreams: true,
  ignoreBodies: true,
  mapsInQuery: true,
  structsInQuery: true,
  goDurations: true,
  protobufBodies: true,
  prettyJson: true,
  grpcMetadata: true,
  jsonClientStreams: true,
  int64Numbers: true,
  fullyDecodeReservedExpansion: true,
};

/** All option names that `--rest` accepts. */
export const switchNames: readonly SwitchName[] = Object.keys(switches).filter(isSwitchName);

function isSwitchName(name: string): name is SwitchName {
  return Object.hasOwn(switches, name);
}

/** Splits values of `--rest` into names. A value may contain several names, separated by commas. */
export function splitSwitches(values: readonly string[]): readonly string[] {
  return values.flatMap((text) => text.split(",")).map((name) => name.replace(/^rest\./, ""));
}

/** Parses the names in values of `--rest`. @throws UsageError that lists all names */
export function parseSwitches(values: readonly string[]): ReadonlySet<SwitchName> {
  return new Set(splitSwitches(values).map((name) => readValue(oneOf(switchNames), "--rest", name)));
}

/** Returns a profile's REST options, with some switches enabled for every service. */
export function toRestOptions(names: ReadonlySet<SwitchName>, profile: RestProfile = "strict"): RestOptions {
  const { fullyDecodeReservedExpansion = false, ...ofServices } = Object.fromEntries(
    [...names].map((name) => [name, true]),
  );
  return { profile, service: () => ofServices, fullyDecodeReservedExpansion };
}

/** The names of all profiles. */
export const profileNames: readonly RestProfile[] = ["strict", "google", "grpc-gateway", "envoy", "a2a"];

/** The flag `--visibility` for commands that read a definition. */
export const visibilityFlag: Flag = {
  value: "LABEL",
  about: "hides what has a rule of google.api.visibility without LABEL",
  multiple: true,
};

/** Returns what the flag makes visible, or `undefined` if all elements are visible. */
export function visibilityOf({ visibility }: ParsedFlags): VisibilityOptions | undefined {
  return visibility === undefined ? undefined : { allow: textsOf(visibility) };
}

/** The flag for the names in operation ids. */
export const operationIdsFlag: Flag = {
  value: "NAMES",
  about: "the names in operation ids: service (with the version, the default), rpc, or full (with the package)",
};

/** The type of the names in operation ids. */
export const operationIdsType: SettingType<OperationIds> = oneOf(["service", "rpc", "full"]);

/** Returns the option that {@link operationIdsFlag} sets. @throws UsageError for unknown names */
export function operationIdsOf(flags: ParsedFlags): { readonly operationIds?: OperationIds } {
  const operationIds = readFlag(flags, "operation-ids", operationIdsType);
  return operationIds === undefined ? {} : { operationIds };
}
