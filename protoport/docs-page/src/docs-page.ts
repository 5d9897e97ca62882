import { existsSync, readFileSync } from "node:fs";
import type { Endpoint } from "@protoport/gateway";
import { type OptionNames, refuseUnknownOptions, required } from "@protoport/gateway/options";
import { pageFile } from "./page-file.ts";
import { memoizeAsync, type Resource, resourceEndpoint } from "./resource.ts";
import { serializeDocument, type SerializedDocument } from "./serialized-document.ts";

/** Options for {@link createDocsPage}. */
export interface DocsPageOptions {
  /**
   * Creates the OpenAPI document, as an object or as JSON text. `document` is called at the first request, and again
   * after a failure. Prefer an object for large documents, because an object is serialized in steps that do not block
   * the event loop for long.
   */
  readonly document: () => string | object | Promise<string | object>;
  /**
   * Whether the page is public. A page that is not public requires a credential. `/` redirects to the page only if it
   * is public.
   */
  readonly open: boolean;
}

const docsPageOptionNames: OptionNames<DocsPageOptions> = { document: required, open: required };

// The page may only run its own script, so text in the description or in a response is never executed. Scripts from
// this server's upstreams are not executed either. Styles are loaded only from this server and never inline. Requests
// may also be sent to the servers in the description, because the user can select a server.
function pagePolicy(servers: readonly string[], scriptHash: string): string {
  return [
    "default-src 'none'",
    `script-src '${scriptHash}'`,
    "style-src 'self'",
    "img-src 'self'",
    `connect-src ${["'self'", ...servers].join(" ")}`,
    "base-uri 'none'",
    "form-action 'none'",
    "frame-ancestors 'none'",
  ].join("; ");
}

/** The Content-Security-Policy for all files except the page. The other files load nothing. */
const filePolicy = "default-src 'none'; frame-ancestors 'none'";

function headerOf(contentType: string, policy = filePolicy): Record<string, string> {
  return {
    "content-type": contentType,
    "cache-control": "no-cache",
    "content-security-policy": policy,
    "cross-origin-opener-policy": "same-origin",
    "referrer-policy": "no-referrer",
    "x-content-type-options": "nosniff",
  };
}

/**
 * Creates endpoints for an OpenAPI document at `/openapi.json` and `/openapi.yaml`. The endpoint `/docs` serves a page
 * for reading the document and trying its operations in a browser.
 *
 * The content is created on the first request, so that the start is fast. The content is compressed once per content
 * coding. The page works offline and under a strict Content-Security-Policy. The page's paths are relative, so the page
 * works below any base URL.
 *
 * @throws TypeError for unknown options
 */
export function createDocsPage(options: DocsPageOptions): Endpoint[] {
  refuseUnknownOptions(options, docsPageOptionNames, "createDocsPage");
  const { document, open } = options;
  const serialized = memoizeAsync(async () => serializeDocument(await document()));
  const script = memoizeAsync(createScript);
  const endpointOf = (
    path: string,
    contentType: string,
    write: (document: SerializedDocument) => Resource["body"] | Promise<Resource["body"]>,
  ): Endpoint =>
    resourceEndpoint(path, open, async () => {
      return { header: headerOf(contentType), body: await write(await serialized()) };
    });
  const endpoints = [
    endpointOf("/openapi.json", "application/json", ({ json }) => json),
    // RFC 9512 defines the media type.
    endpointOf("/openapi.yaml", "application/yaml", ({ yaml }) => yaml()),
    resourceEndpoint("/docs", open, async () => {
      const [{ origins }, { hash }] = await Promise.all([serialized(), script()]);
      return { header: headerOf("text/html; charset=utf-8", pagePolicy(origins, hash)), body: writePage(hash) };
    }),
    endpointOf("/docs/page.js", "text/javascript; charset=utf-8", async () => (await script()).text),
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
  handle: () => ({ httpStatus: 302, header: { ...headerOf("text/plain"), location: "docs" }, body: "" }),
};

function read(name: string): string {
  return readFileSync(pageFile(name), "utf8");
}

/** The page's script, and its hash for a Content-Security-Policy and for `integrity`. */
interface PageScript {
  readonly text: string;
  readonly hash: string;
}

async function createScript(): Promise<PageScript> {
  const text = await readScript();
  // Web Crypto hashes outside the event loop.
  const digest = await crypto.subtle.digest("SHA-256", new TextEncoder().encode(text));
  return { text, hash: `sha256-${Buffer.from(digest).toString("base64")}` };
}

/** Returns the page's HTML. The policy allows the script only if the script element also has the hash. */
function writePage(hash: string): string {
  return read("page.html").replace('src="docs/page.js"', `src="docs/page.js" integrity="${hash}"`);
}

/** Returns the script that the build has written. In a checkout, bundles the script. */
async function readScript(): Promise<string> {
  if (existsSync(pageFile("page.js"))) return read("page.js");
  const { writePageScript } = await import("./page-script.ts");
  return writePageScript();
}
