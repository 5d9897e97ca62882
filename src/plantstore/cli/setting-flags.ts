import {
  type Configuration,
  ConfigurationError,
  type ConfigurationSources,
  readConfiguration,
  settings,
} from "../server/index.ts";
import { type Command, type Flag, type GivenFlags, type Terminal, textOf } from "./command.ts";

const settingFlags: Readonly<Record<string, Flag>> = Object.fromEntries(
  Object.values(settings).flatMap(({ flag, about }) => (flag === undefined ? [] : [[flag, { value: "VALUE", about }]])),
);

/** Returns the flags of a command by name: its own, and those of the settings that it takes. */
export function flagsOf({ flags = {}, settings: taken }: Command): Readonly<Record<string, Flag>> {
  return taken === undefined ? flags : { ...flags, ...settingFlags };
}

/** Returns the sources of a command's settings: its flags and the environment. */
export function sourcesOf(flags: GivenFlags, environment: Terminal["environment"]): ConfigurationSources {
  const texts = Object.entries(flags).map(([name, flag]) => [name, textOf(flag)]);
  return { environment, flags: Object.fromEntries(texts) };
}

/**
 * Returns the configuration of the server.
 *
 * @throws ConfigurationError with everything that is wrong with it
 */
export function readOrThrow(flags: GivenFlags, environment: Terminal["environment"]): Configuration {
  const reading = readConfiguration(sourcesOf(flags, environment));
  if (reading.kind === "value") return reading.value;
  throw new ConfigurationError(reading.problems);
}
