import type { RestOptions } from "../rest/index.ts";
import { InputProblem } from "./read-services.ts";

/** The options of `rest` that are on or off. */
export const switchNames = [
  "lenient",
  "sameValueAsPath",
  "updateMaskFromBody",
  "streamInResults",
  "ignoreBodies",
  "mapsInQuery",
  "grpcMetadata",
  "jsonClientStreams",
  "shortEnumNames",
  "int64Numbers",
  "forms",
  "multipartForms",
  "fullyDecodeReservedExpansion",
] as const;

export type SwitchName = Extract<(typeof switchNames)[number], keyof RestOptions>;

/** Returns the names that are given, each alone or several with commas. @throws InputProblem that lists all names */
export function parseSwitches(given: readonly string[]): ReadonlySet<SwitchName> {
  const names = given.flatMap((text) => text.split(",")).map((name) => name.replace(/^rest\./, ""));
  return new Set(
    names.map((name) => {
      const known = switchNames.find((each) => each === name);
      if (known === undefined) throw new InputProblem(`--rest knows no ${name}, only ${switchNames.join(", ")}`);
      return known;
    }),
  );
}

/** Returns options that turn these on, for every service. */
export function toRestOptions(names: ReadonlySet<SwitchName>): RestOptions {
  const { fullyDecodeReservedExpansion, ...perService } = Object.fromEntries(
    [...names].map((name) => [name, (): boolean => true]),
  );
  return { ...perService, ...(fullyDecodeReservedExpansion && { fullyDecodeReservedExpansion: true }) };
}
