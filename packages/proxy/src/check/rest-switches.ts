import type { RestOptions, RestProfile, RestServiceOptions } from "@plantstore/protocols";
import { InputError } from "./input-error.ts";

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

/**
 * Parses the names in values of `--rest`.
 *
 * @throws InputError that lists all names
 */
export function parseSwitches(values: readonly string[]): ReadonlySet<SwitchName> {
  return new Set(
    splitSwitches(values).map((name) => {
      if (!isSwitchName(name)) throw new InputError(`--rest must be one of ${switchNames.join(", ")}, got "${name}"`);
      return name;
    }),
  );
}

/** Returns a profile's REST options, with some switches enabled for every service. */
export function toRestOptions(names: ReadonlySet<SwitchName>, profile: RestProfile = "strict"): RestOptions {
  const { fullyDecodeReservedExpansion = false, ...ofServices } = Object.fromEntries(
    [...names].map((name) => [name, true]),
  );
  return { profile, service: () => ofServices, fullyDecodeReservedExpansion };
}

/** Parses a profile's name. @throws InputError that lists all names */
export function parseProfile(name: string): RestProfile {
  const profileName = profileNames.find((each) => each === name);
  if (profileName === undefined)
    throw new InputError(`--rest-profile must be one of ${profileNames.join(", ")}, got "${name}"`);
  return profileName;
}

/** The names of all profiles. */
export const profileNames: readonly RestProfile[] = ["strict", "google", "grpc-gateway", "envoy", "a2a"];

/** Parses the status for a google.protobuf.Empty response. @throws InputError unless the text is 200 or 204 */
export function parseEmptyResponse(text: string): 200 | 204 {
  if (text === "200") return 200;
  if (text === "204") return 204;
  throw new InputError(`--empty-response must be 200 or 204, got "${text}"`);
}
