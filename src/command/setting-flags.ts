import { type Flag, type ParsedFlags, type SettingFlags, textOf } from "@protoport/command-line";
import {
  type ConfigurationSources,
  defaultText,
  flagOf,
  type PlantSetting,
  settingGroups,
  settings,
} from "../server/index.ts";
import type { PlantTerminal } from "./command.ts";

const flags: Readonly<Record<string, Flag>> = Object.fromEntries(
  Object.values(settings).flatMap((setting) => {
    const flag = flagOf(setting);
    return flag === undefined ? [] : [[flag, { value: "VALUE", about: setting.about }]];
  }),
);

/** The server's settings, for the command `serve`. The help for `serve` lists all settings. */
export const listedSettings: SettingFlags = {
  flags,
  help: [
    "Settings, by flag or by environment variable, with their defaults:",
    ...settingGroups.flatMap(({ title, settings: listed }) => [
      "",
      `${title}:`,
      ...listed.flatMap((setting) => [`  ${namesOf(setting)}`, `      ${descriptionOf(setting)}`]),
    ]),
  ],
};

/** The server's settings, for commands other than `serve`. Their help refers to the help for `serve`. */
export const acceptedSettings: SettingFlags = {
  flags,
  help: ['The settings are those of serve; run "plantstore help serve" to list them.'],
};

/** Returns a setting's description, with the default if any. */
export function descriptionOf(setting: PlantSetting): string {
  return setting.fallback === undefined ? setting.about : `${setting.about} (${defaultText(setting)})`;
}

/** Returns the flag and the variable for a setting. Some settings have no flag. */
export function namesOf(setting: PlantSetting): string {
  const flag = flagOf(setting);
  return flag === undefined ? setting.variable : `--${flag}, ${setting.variable}`;
}

/** Returns the sources for a command's settings, which are the flags and the environment. */
export function sourcesOf(parsed: ParsedFlags, environment: PlantTerminal["environment"]): ConfigurationSources {
  const texts = Object.entries(parsed).map(([name, flag]) => [name, textOf(flag)]);
  return { environment, flags: Object.fromEntries(texts) };
}
