import type { Setting } from "./setting-readers.ts";
import { type Configuration, settings } from "./settings.ts";

/** Settings that belong together, under a title. */
export interface SettingGroup {
  readonly title: string;
  readonly settings: readonly Setting<unknown>[];
}

/** The title of each group, by its first setting; the settings after that in the table belong to it too. */
const titles: Partial<Record<keyof Configuration, string>> = {
  host: "Address and processes",
  database: "Plants",
  tokens: "Your own tokens",
  jwtIssuers: "JSON Web Tokens",
  introspectionUrl: "Token introspection",
  publicUrl: "What clients and pages see",
  trustedProxies: "Proxies",
  ratePerPrincipal: "Rates",
  tlsCertFile: "TLS",
  requestIdAnswers: "Request ids and logs",
  drainDelayMs: "Shutdown and metrics",
};

/** All settings of the server, in the order of their table. */
export const settingGroups: readonly SettingGroup[] = groupSettings();

function groupSettings(): SettingGroup[] {
  const titleOf = new Map<string, string>(Object.entries(titles));
  const groups: { title: string; settings: Setting<unknown>[] }[] = [];
  for (const [key, setting] of Object.entries(settings)) {
    const title = titleOf.get(key);
    if (title !== undefined) groups.push({ title, settings: [] });
    groups.at(-1)?.settings.push(setting);
  }
  return groups;
}
