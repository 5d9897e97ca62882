import { existsSync, readFileSync } from "node:fs";
import { promisify } from "node:util";
import { type Endpoint, negotiateCoding } from "@protoport/gateway";
import { type OptionNames, refuseUnknownOptions, required } from "@protoport/gateway/options";
import { pageFile } from "./page-file.ts";
import { type SerializedDocument, serializeDocument } from "./serialized-document.ts";

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

/** A resource that does not change while the process runs. */
interface Resource {
  /** Header fields, including `content-type`. */
  readonly header: Readonly<Record<string, string>>;
  readonly body: string | Uint8Array;
}

/** A resource in one content coding. */
interface PageRepresentation {
  /** A strong ETag (RFC 9110 §8.8.3). Each coding has a different ETag. */
  readonly etag: string;
  readonly header: Readonly<Record<string, string>>;
  readonly body: Uint8Array;
}

// High compression levels are used, because each resource is compressed once, outside the event loop. brotli's two
// highest levels are not used, because they take ten times as long. node:zlib is loaded on first use, because loading
// takes 3 ms and 3 MB.
const codings = [
  {
    name: "br",
    encode: (body: Uint8Array) => {
      const { brotliCompress, constants } = process.getBuiltinModule("node:zlib");
      return promisify(brotliCompress)(body, { params: { [constants.BROTLI_PARAM_QUALITY]: 9 } });
    },
  },
  {
    name: "gzip",
    encode: (body: Uint8Array) => promisify(process.getBuiltinModule("node:zlib").gzip)(body, { level: 9 }),
  },
] as const;

/**
 * Creates an endpoint that responds with a resource in the coding that the client prefers, or with 304 if the client
 * already has the resource (RFC 9110 §15.4.5). The resource and each compressed version are created on the first
 * request and cached.
 *
 * @param create - creates the resource, and is called again after a failure
 */
export function resourceEndpoint(path: string, open: boolean, create: () => Resource | Promise<Resource>): Endpoint {
  const uncompressed = memoizeAsync(async () => {
    const { header, body } = await create();
    const bytes = typeof body === "string" ? new TextEncoder().encode(body) : body;
    // Web Crypto hashes outside the event loop, unlike node:crypto.
    const digest = Buffer.from(await crypto.subtle.digest("SHA-256", Uint8Array.from(bytes))).toString("base64url");
    return { header, bytes, tag: digest.slice(0, etagLength) };
  });
  const represent = async (coding: (typeof codings)[number] | undefined): Promise<PageRepresentation> => {
    const { header, bytes, tag } = await uncompressed();
    const etag = `"${coding === undefined ? tag : `${tag}-${coding.name}`}"`;
    const varying = { ...header, etag, vary: "accept-encoding" };
    if (coding === undefined) return { etag, header: varying, body: bytes };
    return { etag, header: { ...varying, "content-encoding": coding.name }, body: await coding.encode(bytes) };
  };
  const prepared = new Map([undefined, ...codings].map((coding) => [coding, memoizeAsync(() => represent(coding))]));
  return {
    path,
    open,
    handle: async ({ header: requestHeader }) => {
      const coding = negotiateCoding(requestHeader.get("accept-encoding"), codings);
      const { etag, header, body } = await (prepared.get(coding)?.() ?? represent(coding));
      if (hasTag(requestHeader.get("if-none-match"), etag))
        return { httpStatus: 304, header: withCacheFields(header), body: "" };
      return { httpStatus: 200, header, body };
    },
  };
}

/** Returns a function that creates a value once, even for concurrent calls. A failure is not cached. */
function memoizeAsync<Value>(create: () => Promise<Value>): () => Promise<Value> {
  let cached: Promise<Value> | undefined;
  return () => {
    cached ??= create().catch((error: unknown) => {
      cached = undefined;
      throw error;
    });
    return cached;
  };
}

/** How many digest characters an ETag has. 22 characters have 132 bits, enough for a unique ETag. */
const etagLength = 22;

/** Returns whether `If-None-Match` contains a weak or strong ETag, or `*` (RFC 9110 §13.1.2). */
function hasTag(ifNoneMatch: string | null, etag: string): boolean {
  return (ifNoneMatch ?? "").split(",").some((each) => ["*", etag].includes(each.trim().replace(/^W\//, "")));
}

/** Returns the header fields that a 304 response repeats. */
function withCacheFields(header: Readonly<Record<string, string>>): Readonly<Record<string, string>> {
  return Object.fromEntries(
    Object.entries(header).filter(([name]) => ["cache-control", "etag", "vary"].includes(name)),
  );
}
