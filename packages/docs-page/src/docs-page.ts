import { existsSync, readFileSync } from "node:fs";
import type { Endpoint } from "@plantstore/gateway/internal/serve";
import { type OptionNames, refuseUnknownOptions, required } from "@plantstore/gateway/options";
import { pageFile } from "./page-file.ts";
import { memoizeAsync, type Resource, resourceEndpoint } from "./resource.ts";
import { serializeDocument, type SerializedDocument } from "./serialized-document.ts";

/** Options of {@link createDocsPage}. */
export interface DocsPageOptions {
  /**
   * Creates the OpenAPI document, as an object or as JSON text. Called once, when the document is first requested, and
   * again after a failure. Prefer an object for large documents: it is serialized in steps that do not block the event
   * loop for long.
   */
  readonly document: () => string | object | Promise<string | object>;
  /** Whether the page is public; otherwise it requires a credential. `/` redirects to the page only if it is public. */
  readonly open: boolean;
}

const docsPageOptionNames: OptionNames<DocsPageOptions> = { document: required, open: required };

// Scripts and styles are loaded only from this server and never inline, so text in the description or in a response is
// never executed. Requests may also be sent to the servers in the description, because the user can select one.
function contentSecurityPolicy(servers: readonly string[]): string {
  return [
    "default-src 'none'",
    "script-src 'self'",
    "style-src 'self'",
    "img-src 'self'",
    `connect-src ${["'self'", ...servers].join(" ")}`,
    "base-uri 'none'",
    "form-action 'none'",
    "frame-ancestors 'none'",
  ].join("; ");
}

function headerOf(contentType: string, origins: readonly string[]): Record<string, string> {
  return {
    "content-type": contentType,
    "cache-control": "no-cache",
    "content-security-policy": contentSecurityPolicy(origins),
    "cross-origin-opener-policy": "same-origin",
    "referrer-policy": "no-referrer",
    "x-content-type-options": "nosniff",
  };
}

/**
 * Creates the endpoints of the description: `/openapi.json` and `/openapi.yaml`, and at `/docs` a page for reading it
 * and trying its operations in a browser.
 *
 * The content is created on the first request, so that the start is fast, and compressed once for each coding. The page
 * works offline and under a strict Content-Security-Policy. Its paths are relative, so it works below any base URL.
 *
 * @throws TypeError for unknown options
 */
export function createDocsPage(options: DocsPageOptions): Endpoint[] {
  refuseUnknownOptions(options, docsPageOptionNames, "createDocsPage");
  const { document, open } = options;
  const serialized = memoizeAsync(async () => serializeDocument(await document()));
  const endpointOf = (
    path: string,
    contentType: string,
    write: (document: SerializedDocument) => Resource["body"] | Promise<Resource["body"]>,
  ): Endpoint =>
    resourceEndpoint(path, open, async () => {
      const described = await serialized();
      return { header: headerOf(contentType, described.origins), body: await write(described) };
    });
  const endpoints = [
    endpointOf("/openapi.json", "application/json", ({ json }) => json),
    // RFC 9512.
    endpointOf("/openapi.yaml", "application/yaml", ({ yaml }) => yaml()),
    endpointOf("/docs", "text/html; charset=utf-8", () => read("page.html")),
    endpointOf("/docs/page.js", "text/javascript; charset=utf-8", readScript),
    endpointOf("/docs/page.css", "text/css; charset=utf-8", () => styles.map(read).join("\n")),
    endpointOf("/docs/icon.svg", "image/svg+xml", () => read("icon.svg")),
  ];
  return open ? [...endpoints, redirectToPage] : endpoints;
}

const styles = ["page.css", "layout.css", "print.css"];

const redirectToPage: Endpoint = {
  path: "/",
  yieldsToRules: true,
  open: true,
  handle: () => ({ httpStatus: 302, header: { ...headerOf("text/plain", []), location: "docs" }, body: "" }),
};

function read(name: string): string {
  return readFileSync(pageFile(name), "utf8");
}

/** Returns the script: in the package, reads the file that the build has written; in a checkout, bundles it. */
async function readScript(): Promise<string> {
  if (existsSync(pageFile("page.js"))) return read("page.js");
  const { writePageScript } = await import("./page-script.ts");
  return writePageScript();
}
