import { promisify } from "node:util";
import { type Endpoint, negotiateCoding } from "@protoport/gateway";

/** A resource that does not change while the process runs. */
export interface Resource {
  /** Header fields, including `content-type`. */
  readonly header: Readonly<Record<string, string>>;
  readonly body: string | Uint8Array;
}

/** A resource in one content coding. */
interface Representation {
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
  const represent = async (coding: (typeof codings)[number] | undefined): Promise<Representation> => {
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
export function memoizeAsync<Value>(create: () => Promise<Value>): () => Promise<Value> {
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
