import { bad, type Reading, value } from "./setting.ts";

/**
 * Reads `PLANTSTORE_PUBLIC_URL`, the base URL that clients use.
 *
 * Its path becomes the `requestPathPrefix`; a query, a fragment or credentials in it mean nothing
 * there and are refused.
 */
export function readPublicUrl(text: string): Reading<URL> {
  const url = URL.canParse(text) ? new URL(text) : undefined;
  const isHttp = url?.protocol === "http:" || url?.protocol === "https:";
  if (url === undefined || !isHttp) return bad("be an http or https URL");
  if (url.search !== "" || url.hash !== "" || url.username !== "" || url.password !== "") {
    return bad("be a URL without query, fragment and credentials");
  }
  return value(url);
}

/** Returns the path of the base URL without its last slash: "" for `https://plants.example/`. */
export function requestPathPrefixOf(publicUrl: URL | undefined): string {
  return publicUrl === undefined ? "" : publicUrl.pathname.replace(/\/+$/, "");
}
