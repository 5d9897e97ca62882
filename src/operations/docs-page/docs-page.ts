import { readFileSync } from "node:fs";

/** A resource of the description, answered to GET and HEAD; the gateway's `Endpoint` by structure. */
export interface DescriptionEndpoint {
  readonly path: string;
  readonly open: boolean;
  readonly answer: () => {
    readonly httpStatus: number;
    readonly header: Record<string, string>;
    readonly body: string;
  };
}

/** What the page is a page of. */
export interface DocsPageOptions {
  /** Makes the OpenAPI document, as JSON; asked once, when the document first is. */
  readonly document: () => string;
  /** Whether everybody may read it, or only who has a credential. `/` leads to the page only when it is open. */
  readonly open: boolean;
}

const scripts = ["description", "element", "json-text", "page", "prose", "reading", "request", "trying"];

/** The files of the page by the path they are served at, relative to its own. */
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

// Everything comes from this server, nothing inline: text of a description or an answer can never run.
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
 * Returns the endpoints of the description: `/openapi.json`, and at `/docs` a page to read it and to try its
 * operations in a browser.
 *
 * Each is made when it is first asked for: few servers are, and their start is the shorter. The page works offline
 * and under a strict content security policy. Paths in it are relative, so that it works below any base URL.
 */
export function docsPage({ document, open }: DocsPageOptions): DescriptionEndpoint[] {
  const page = files.map(({ path, file, contentType }) => ({ path, contentType, make: () => read(file) }));
  const resources = [{ path: "/openapi.json", contentType: "application/json", make: document }, ...page];
  const endpoints = resources.map(({ path, contentType, make }) => {
    const header = { ...commonHeader, "content-type": contentType };
    let body: string | undefined;
    return { path, open, answer: () => ({ httpStatus: 200, header, body: (body ??= make()) }) };
  });
  return open ? [...endpoints, leadToPage] : endpoints;
}

const leadToPage: DescriptionEndpoint = {
  path: "/",
  open: true,
  answer: () => ({ httpStatus: 302, header: { ...commonHeader, location: "docs" }, body: "" }),
};

function read(file: string): string {
  return readFileSync(new URL(`files/${file}`, import.meta.url), "utf8");
}
