import type { RestOptions, RestProfile, RestServiceOptions } from "@plantstore/gateway/rest";
import { InputProblem } from "./read-services.ts";

/** The names of the members of a type that are true or false. */
type BooleansOf<Options> = {
  [Name in keyof Options]-?: NonNullable<Options[Name]> extends boolean ? Name : never;
}[keyof Options];

/** An option that `--rest` turns on: of `rest`, or for every service of what `rest.service` returns. */
export type SwitchName = BooleansOf<RestServiceOptions> | "fullyDecodeReservedExpansion";

const switches: Readonly<Record<SwitchName, true>> = {
  lenient: true,
  sameValueAsPath: true,
  updateMaskFromBody: true,
  streamInResults: true,
  arrayStreams: true,
  ignoreBodies: true,
  mapsInQuery: true,
  grpcMetadata: true,
  jsonClientStreams: true,
  int64Numbers: true,
  fullyDecodeReservedExpansion: true,
};

/** The names of all switches. */
export const switchNames: readonly string[] = Object.keys(switches);

function isSwitchName(name: string): name is SwitchName {
  return Object.hasOwn(switches, name);
}

/** Returns the names that are given, each alone or several with commas. @throws InputProblem that lists all names */
export function parseSwitches(given: readonly string[]): ReadonlySet<SwitchName> {
  const names = given.flatMap((text) => text.split(",")).map((name) => name.replace(/^rest\./, ""));
  return new Set(
    names.map((name) => {
      if (!isSwitchName(name)) throw new InputProblem(`--rest knows no ${name}, only ${switchNames.join(", ")}`);
      return name;
    }),
  );
}

/** Returns options that turn these on, for every service, in addition to those of a profile. */
export function toRestOptions(names: ReadonlySet<SwitchName>, profile: RestProfile = "strict"): RestOptions {
  const { fullyDecodeReservedExpansion = false, ...ofServices } = Object.fromEntries(
    [...names].map((name) => [name, true]),
  );
  return { profile, service: () => ofServices, fullyDecodeReservedExpansion };
}

/** Returns the profile of this name. @throws InputProblem that lists all names */
export function parseProfile(name: string): RestProfile {
  const found = profileNames.find((each) => each === name);
  if (found === undefined)
    throw new InputProblem(`--rest-profile must be one of ${profileNames.join(", ")}, got ${name}`);
  return found;
}

const profileNames: readonly RestProfile[] = ["strict", "google", "grpc-gateway", "envoy"];
