import { readdirSync, readFileSync } from "node:fs";
import { stripTypeScriptTypes } from "node:module";
import { extname } from "node:path";
import type { Endpoint, EndpointAnswer } from "../calls/index.ts";

/** Options of {@link createDocsPage}. */
export interface DocsPageOptions {
  /** Creates the OpenAPI document, as JSON; called once, when the document is first requested. */
  readonly document: () => string;
  /** Whether everyone may read it, or only with a credential. `/` redirects to the page only when it is open. */
  readonly open: boolean;
}

const folder = new URL("files/", import.meta.url);

const contentTypes: Readonly<Record<string, string>> = {
  ".css": "text/css; charset=utf-8",
  ".svg": "image/svg+xml",
  ".js": "text/javascript; charset=utf-8",
};

/** The files that the page consists of: scripts are TypeScript in a checkout, and JavaScript once it is built. */
const parts = readdirSync(folder).filter((name) => name !== "page.html");

function pathOf(name: string): string {
  return `/docs/${name.replace(/\.ts$/, ".js")}`;
}

// All scripts are asked for at once, before one is read that imports others.
const preloads = parts
  .map(pathOf)
  .flatMap((path) => (path.endsWith(".js") ? [`<${path.slice(1)}>; rel=modulepreload`] : []))
  .join(", ");

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
 * Creates the endpoints of the description: `/openapi.json`, and at `/docs` a page for reading it and trying its
 * operations in a browser.
 *
 * The content is created on the first request, which keeps starts short. The page works offline and under a strict
 * content security policy. Its paths are relative, so it works below any base URL.
 */
export function createDocsPage({ document, open }: DocsPageOptions): Endpoint[] {
  let text: string | undefined;
  const describe = (): string => (text ??= document());
  const endpointOf = (path: string, make: (document: string) => Omit<EndpointAnswer, "httpStatus">): Endpoint => {
    let answer: EndpointAnswer | undefined;
    return { path, open, answer: () => (answer ??= { httpStatus: 200, ...make(describe()) }) };
  };
  const description = endpointOf("/openapi.json", (body) => ({ header: headerOf("application/json", body), body }));
  const page = endpointOf("/docs", (from) => {
    const header = { ...headerOf("text/html; charset=utf-8", from), link: preloads };
    return { header, body: read("page.html") };
  });
  const others = parts.map((name) =>
    endpointOf(pathOf(name), (from) => {
      return { header: headerOf(contentTypes[extname(pathOf(name))] ?? "", from), body: read(name) };
    }),
  );
  return open ? [description, page, ...others, leadToPage] : [description, page, ...others];
}

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
  const text = readFileSync(new URL(name, folder), "utf8");
  return name.endsWith(".ts") ? stripTypeScriptTypes(text) : text;
}
