import type { ParseArgsOptionsConfig } from "node:util";
import {
  type Configuration,
  ConfigurationError,
  type ConfigurationSources,
  readConfiguration,
  type Setting,
  settings,
} from "../server/index.ts";
import { type Flags, type Terminal, textOf } from "./command.ts";

/** All settings of the server, in the order of their table. */
export const allSettings: readonly Setting<unknown>[] = Object.values(settings);

/** The flags of the settings, for the commands that read the configuration of the server. */
export const settingOptions: ParseArgsOptionsConfig = Object.fromEntries(
  allSettings.flatMap(({ flag }) => (flag === undefined ? [] : [[flag, { type: "string" }]])),
);

/** Returns where the settings of a command are from. */
export function sourcesOf(flags: Flags, environment: Terminal["environment"]): ConfigurationSources {
  const texts = Object.entries(flags).map(([name, flag]) => [name, textOf(flag)]);
  return { environment, flags: Object.fromEntries(texts) };
}

/**
 * Returns the configuration of the server.
 *
 * @throws ConfigurationError with everything that is wrong with it
 */
export function readOrThrow(flags: Flags, environment: Terminal["environment"]): Configuration {
  const reading = readConfiguration(sourcesOf(flags, environment));
  if (reading.kind === "value") return reading.value;
  throw new ConfigurationError(reading.problems);
}
