/** Returns the location of the web page or worker. Outside browsers, returns an empty object. */
export function pageLocation(): { readonly href?: string; readonly origin?: string } {
  return Object(Reflect.get(globalThis, "location"));
}

/** Returns whether the code runs in a web page or a web page's worker. */
export function runsInWebPage(): boolean {
  return "document" in globalThis || "importScripts" in globalThis;
}
