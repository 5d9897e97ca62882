import type { Setting } from "./setting-readers.ts";

/** The sources of the settings; a flag takes precedence over the variable of the same setting. */
export interface ConfigurationSources {
  readonly environment: Readonly<Record<string, string | undefined>>;
  /** Flags by name, without dashes. */
  readonly flags: Readonly<Record<string, string | undefined>>;
}

/**
 * Returns the text that was given for a setting, and the name of the flag or variable that it was given by; `undefined`
 * when there is none. An empty variable counts as not set.
 */
export function givenText(
  setting: Setting<unknown>,
  sources: ConfigurationSources,
): { readonly name: string; readonly text: string } | undefined {
  const flag = setting.flag === undefined ? undefined : sources.flags[setting.flag];
  if (flag !== undefined) return { name: `--${setting.flag}`, text: flag };
  const variable = sources.environment[setting.variable];
  return variable === undefined || variable === "" ? undefined : { name: setting.variable, text: variable };
}

/** Returns a text without the users and passwords in its URLs, for messages. */
export function withoutPassword(text: string): string {
  return text.replaceAll(/\/\/[^/?#\s]*@/g, "//…@");
}
