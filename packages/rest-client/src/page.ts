/** Returns the location of the web page or worker; an empty object outside of browsers. */
export function pageLocation(): { readonly href?: string; readonly origin?: string } {
  return Object(Reflect.get(globalThis, "location"));
}

/** Returns whether this runs in a web page, or in a worker of a web page. */
export function runsInWebPage(): boolean {
  return "document" in globalThis || "importScripts" in globalThis;
}
