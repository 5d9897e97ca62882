import { readFileSync } from "node:fs";
import type { Endpoint } from "../../gateway/index.ts";

/** Options of {@link createDocsPage}. */
export interface DocsPageOptions {
  /** Creates the OpenAPI document, as JSON; called once, when the document is first requested. */
  readonly document: () => string;
  /** Whether everyone may read it, or only with a credential. `/` redirects to the page only when it is open. */
  readonly open: boolean;
}

const scripts = ["description", "element", "json-text", "page", "prose", "reading", "request", "trying"];

/** The files of the page by path, relative to the base URL. */
const files: readonly { readonly path: string; readonly file: string; readonly contentType: string }[] = [
  { path: "/docs", file: "page.html", contentType: "text/html; charset=utf-8" },
  ...["page", "operation"].map((name) => ({
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
const contentSecurityPolicy = [
  "default-src 'none'",
  "script-src 'self'",
  "style-src 'self'",
  "img-src 'self'",
  "connect-src 'self'",
  "base-uri 'none'",
  "form-action 'none'",
  "frame-ancestors 'none'",
].join("; ");

const commonHeader: Readonly<Record<string, string>> = {
  "cache-control": "no-cache",
  "content-security-policy": contentSecurityPolicy,
  "cross-origin-opener-policy": "same-origin",
  "referrer-policy": "no-referrer",
  "x-content-type-options": "nosniff",
};

/**
 * Creates the endpoints of the description: `/openapi.json`, and at `/docs` a page for reading it and trying its
 * operations in a browser.
 *
 * The content is created on the first request, which keeps starts short. The page works offline and under a strict
 * content security policy. Its paths are relative, so it works below any base URL.
 */
export function createDocsPage({ document, open }: DocsPageOptions): Endpoint[] {
  const page = files.map(({ path, file, contentType }) => ({ path, contentType, make: () => read(file) }));
  const resources = [{ path: "/openapi.json", contentType: "application/json", make: document }, ...page];
  const endpoints = resources.map(({ path, contentType, make }) => {
    const header = { ...commonHeader, "content-type": contentType };
    let body: string | undefined;
    return { path, open, answer: () => ({ httpStatus: 200, header, body: (body ??= make()) }) };
  });
  return open ? [...endpoints, leadToPage] : endpoints;
}

const leadToPage: Endpoint = {
  path: "/",
  open: true,
  answer: () => ({ httpStatus: 302, header: { ...commonHeader, location: "docs" }, body: "" }),
};

function read(file: string): string {
  return readFileSync(new URL(`files/${file}`, import.meta.url), "utf8");
}
