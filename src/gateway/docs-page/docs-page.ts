import { existsSync, readFileSync } from "node:fs";
import type { Endpoint } from "../calls/index.ts";
import { pageFile } from "./page-file.ts";
import { resourceEndpoint } from "./resource.ts";
import { writeYaml } from "./yaml-text.ts";

/** Options of {@link createDocsPage}. */
export interface DocsPageOptions {
  /** Creates the OpenAPI document, as JSON; called once, when the document is first requested. */
  readonly document: () => string;
  /** Whether everyone may read it, or only with a credential. `/` redirects to the page only when it is open. */
  readonly open: boolean;
}

// Everything comes from this server and nothing is inline, so text in the description or in a response can never run.
// Requests may also go to the servers that the description names, which the page offers for choice.
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

function headerOf(contentType: string, document: string): Record<string, string> {
  return {
    "content-type": contentType,
    "cache-control": "no-cache",
    "content-security-policy": contentSecurityPolicy(originsIn(document)),
    "cross-origin-opener-policy": "same-origin",
    "referrer-policy": "no-referrer",
    "x-content-type-options": "nosniff",
  };
}

/**
 * Creates the endpoints of the description: `/openapi.json` and `/openapi.yaml`, and at `/docs` a page for reading it
 * and trying its operations in a browser.
 *
 * The content is created on the first request, which keeps starts short, and then compressed once for each coding. The
 * page works offline and under a strict content security policy. Its paths are relative, so it works below any base URL.
 */
export function createDocsPage({ document, open }: DocsPageOptions): Endpoint[] {
  let text: string | undefined;
  const describe = (): string => (text ??= document());
  const endpointOf = (path: string, contentType: string, write: () => string | Promise<string>): Endpoint =>
    resourceEndpoint(path, open, async () => ({ header: headerOf(contentType, describe()), body: await write() }));
  const endpoints = [
    endpointOf("/openapi.json", "application/json", describe),
    // RFC 9512.
    endpointOf("/openapi.yaml", "application/yaml", () => writeYaml(describe())),
    endpointOf("/docs", "text/html; charset=utf-8", () => read("page.html")),
    endpointOf("/docs/page.js", "text/javascript; charset=utf-8", readScript),
    endpointOf("/docs/page.css", "text/css; charset=utf-8", () => styles.map(read).join("\n")),
    endpointOf("/docs/icon.svg", "image/svg+xml", () => read("icon.svg")),
  ];
  return open ? [...endpoints, leadToPage] : endpoints;
}

const styles = ["page.css", "layout.css", "print.css"];

const leadToPage: Endpoint = {
  path: "/",
  open: true,
  answer: () => ({ httpStatus: 302, header: { ...headerOf("text/plain", "{}"), location: "docs" }, body: "" }),
};

/** Returns the origins of the servers in a document; those of relative URLs are this server. */
function originsIn(document: string): string[] {
  const { servers = [] }: { readonly servers?: readonly { readonly url: string }[] } = JSON.parse(document);
  const absolute = servers.filter(({ url }) => /^https?:/.test(url) && URL.canParse(url));
  return [...new Set(absolute.map(({ url }) => new URL(url).origin))];
}

function read(name: string): string {
  return readFileSync(pageFile(name), "utf8");
}

/** Reads the script that the build has written; in a checkout there is none. */
async function readScript(): Promise<string> {
  if (existsSync(pageFile("page.js"))) return read("page.js");
  const { writePageScript } = await import("./page-script.ts");
  return writePageScript();
}
