/** Where a page is; without members outside of pages, and of workers of one. */
export function pageLocation(): { readonly href?: string; readonly origin?: string } {
  return Object(Reflect.get(globalThis, "location"));
}

/** Whether this runs in a page, or a worker of one. */
export function isPage(): boolean {
  return "document" in globalThis || "importScripts" in globalThis;
}
