import { bad, type Reading, value } from "./setting.ts";

/**
 * Reads the origins whose pages may call, separated by commas, or `*` for every one.
 *
 * An origin is spelled as browsers send it (RFC 6454 §6.2): one with a path or in capitals would never match.
 */
export function readCorsOrigins(text: string): Reading<readonly string[] | "*"> {
  if (text === "*") return value("*");
  const origins = text.split(",").map((origin) => origin.trim());
  const wrong = origins.find((origin) => !URL.canParse(origin) || new URL(origin).origin !== origin);
  return wrong === undefined
    ? value(origins)
    : bad("be * or origins such as https://shop.example, separated by commas");
}
