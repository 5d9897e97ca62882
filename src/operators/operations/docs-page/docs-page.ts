import { readFileSync } from "node:fs";
import type { Endpoint, EndpointAnswer } from "../../../gateway/index.ts";

/** Options of {@link createDocsPage}. */
export interface DocsPageOptions {
  /** Creates the OpenAPI document, as JSON; called once, when the document is first requested. */
  readonly document: () => string;
  /** Whether everyone may read it, or only with a credential. `/` redirects to the page only when it is open. */
  readonly open: boolean;
}

const scripts = [
  "answer",
  "connection",
  "description",
  "element",
  "endpoint",
  "example",
  "fields",
  "inputs",
  "json-text",
  "page",
  "prose",
  "reading",
  "request",
  "route",
  "rpc",
  "schema-kind",
  "sidebar",
  "snippet-box",
  "snippets",
  "trying",
  "views",
];

/** The files of the page by path, relative to the base URL. */
const files: readonly { readonly path: string; readonly file: string; readonly contentType: string }[] = [
  { path: "/docs", file: "page.html", contentType: "text/html; charset=utf-8" },
  ...["page", "frame", "operation"].map((name) => ({
    path: `/docs/${name}.css`,
    file: `${name}.css`,
    contentType: "text/css; charset=utf-8",
  })),
  { path: "/docs/icon.svg", file: "icon.svg", contentType: "image/svg+xml" },
  ...scripts.map((name) => ({
    path: `/docs/${name}.js`,
    file: `${name}.js`,
    contentType: "text/javascript; charset=utf-8",
  })),
];

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

function commonHeader(servers: readonly string[]): Readonly<Record<string, string>> {
  return {
    "cache-control": "no-cache",
    "content-security-policy": contentSecurityPolicy(servers),
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
  const page = files.map(({ path, file, contentType }) => ({ path, contentType, make: () => read(file) }));
  const resources = [{ path: "/openapi.json", contentType: "application/json", make: describe }, ...page];
  const endpoints = resources.map(({ path, contentType, make }) => {
    let answer: EndpointAnswer | undefined;
    const create = (): EndpointAnswer => {
      const header = { ...commonHeader(originsIn(describe())), "content-type": contentType };
      return { httpStatus: 200, header, body: make() };
    };
    return { path, open, answer: () => (answer ??= create()) };
  });
  return open ? [...endpoints, leadToPage] : endpoints;
}

const leadToPage: Endpoint = {
  path: "/",
  open: true,
  answer: () => ({ httpStatus: 302, header: { ...commonHeader([]), location: "docs" }, body: "" }),
};

/** Returns the origins of the servers in a document; those of relative URLs are this server. */
function originsIn(document: string): string[] {
  const { servers = [] }: { readonly servers?: readonly { readonly url: string }[] } = JSON.parse(document);
  const absolute = servers.filter(({ url }) => /^https?:/.test(url) && URL.canParse(url));
  return [...new Set(absolute.map(({ url }) => new URL(url).origin))];
}

function read(file: string): string {
  return readFileSync(new URL(`files/${file}`, import.meta.url), "utf8");
}
