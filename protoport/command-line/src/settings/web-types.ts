import type { SettingType } from "./setting.ts";
import { formatted } from "./setting-types.ts";

/** Returns whether text is an origin. One with a path or capital letters would never match (RFC 6454 §6.2). */
export function isOrigin(text: string): boolean {
  return URL.parse(text)?.origin === text;
}

/** The base URL that clients use. The URL's path is the prefix for all paths. */
export const publicUrl: SettingType<URL> = formatted(
  "URL",
  "an http or https URL without a query, fragment or credentials, such as https://api.example",
  (text) => {
    const url = URL.parse(text);
    const isPlain = url !== null && /^https?:$/.test(url.protocol) && url.username + url.password === "";
    return isPlain && !/[?#]/.test(text) ? url : undefined;
  },
);
