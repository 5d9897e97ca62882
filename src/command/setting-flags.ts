import { type ConfigurationSources, flagOf, settings } from "../server/index.ts";
import { type Command, type Flag, type ParsedFlags, type Terminal, textOf } from "./command.ts";

const settingFlags: Readonly<Record<string, Flag>> = Object.fromEntries(
  Object.values(settings).flatMap((setting) => {
    const flag = flagOf(setting);
    return flag === undefined ? [] : [[flag, { value: "VALUE", about: setting.about }]];
  }),
);

/** Returns the flags of a command by name, including those of settings if it accepts them. */
export function flagsOf({ flags = {}, settings: accepted }: Command): Readonly<Record<string, Flag>> {
  return accepted === undefined ? flags : { ...flags, ...settingFlags };
}

/** Returns the sources of a command's settings: its flags and the environment. */
export function sourcesOf(flags: ParsedFlags, environment: Terminal["environment"]): ConfigurationSources {
  const texts = Object.entries(flags).map(([name, flag]) => [name, textOf(flag)]);
  return { environment, flags: Object.fromEntries(texts) };
}
