import { type ConfigurationSources, givenText, withoutPassword } from "./given-text.ts";
import type { Setting } from "./setting-readers.ts";
import { settings } from "./settings.ts";

/** A setting as an operator may see it. */
export interface ShownSetting {
  readonly variable: string;
  /** The text in force; `undefined` when the setting has none. Of a secret, only the part that may be shown. */
  readonly text: string | undefined;
  /** Where the text is from: the flag, the variable, or "default". */
  readonly source: string;
}

/** Returns every setting with the text in force, in the order of the table. Shows no secret and no password in a URL. */
export function showConfiguration(sources: ConfigurationSources): readonly ShownSetting[] {
  return Object.values(settings).map((setting: Setting<unknown>) => {
    const given = givenText(setting, sources);
    const text = given?.text ?? setting.fallback;
    return { variable: setting.variable, text: text && shownText(setting, text), source: given?.name ?? "default" };
  });
}

function shownText({ secret, shown }: Setting<unknown>, text: string): string {
  // A query may contain an API key.
  return secret === true ? (shown?.(text) ?? "(hidden)") : withoutPassword(text).replaceAll(/\?[^,\s]*/g, "?…");
}
