import { promisify } from "node:util";
import type { Endpoint } from "@plantstore/gateway/internal/serve";
import { negotiateCoding } from "@plantstore/gateway/internal/protocols";

/** What is at a path for as long as the process runs. */
export interface Resource {
  /** Header fields, including `content-type`. */
  readonly header: Readonly<Record<string, string>>;
  readonly body: string | Uint8Array<ArrayBuffer>;
}

/** A resource in one coding. */
interface Representation {
  /** A strong one (RFC 9110 §8.8.3), of which each coding needs its own. */
  readonly etag: string;
  readonly header: Readonly<Record<string, string>>;
  readonly body: Uint8Array;
}

// Once, beside the event loop, so almost the best that each has: brotli's last two steps take ten times as long.
// node:zlib is loaded for the first reader, because node takes 3 ms and 3 MB for it.
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
 * Creates an endpoint that answers with a resource in the coding that the client prefers, or with 304 if the client has
 * it already (RFC 9110 §15.4.5). It is made when it is first asked for, and coded when a coding is; both are kept.
 *
 * @param make - makes the resource; called again after it has failed
 */
export function resourceEndpoint(path: string, open: boolean, make: () => Resource | Promise<Resource>): Endpoint {
  const uncoded = onceSettled(async () => {
    const { header, body } = await make();
    const bytes = typeof body === "string" ? new TextEncoder().encode(body) : body;
    // Outside the event loop, unlike node's hashes.
    const digest = Buffer.from(await crypto.subtle.digest("SHA-256", bytes)).toString("base64url");
    return { header, bytes, tag: digest.slice(0, etagLength) };
  });
  const represent = async (coding: (typeof codings)[number] | undefined): Promise<Representation> => {
    const { header, bytes, tag } = await uncoded();
    const etag = `"${coding === undefined ? tag : `${tag}-${coding.name}`}"`;
    const varying = { ...header, etag, vary: "accept-encoding" };
    if (coding === undefined) return { etag, header: varying, body: bytes };
    return { etag, header: { ...varying, "content-encoding": coding.name }, body: await coding.encode(bytes) };
  };
  const prepared = new Map([undefined, ...codings].map((coding) => [coding, onceSettled(() => represent(coding))]));
  return {
    path,
    open,
    answer: async ({ header: asked }) => {
      const coding = negotiateCoding(asked.get("accept-encoding"), codings);
      const { etag, header, body } = await (prepared.get(coding)?.() ?? represent(coding));
      if (hasTag(asked.get("if-none-match"), etag)) return { httpStatus: 304, header: forCaches(header), body: "" };
      return { httpStatus: 200, header, body };
    },
  };
}

/** Returns a function that makes a value once, also for callers that come meanwhile, and again after it has failed. */
export function onceSettled<Value>(make: () => Promise<Value>): () => Promise<Value> {
  let made: Promise<Value> | undefined;
  return () => {
    made ??= make().catch((error: unknown) => {
      made = undefined;
      throw error;
    });
    return made;
  };
}

/** Characters of a digest in an ETag: 132 bits, so no two resources have the same. */
const etagLength = 22;

/** Returns whether `If-None-Match` names this tag, weak or not, or any (RFC 9110 §13.1.2). */
function hasTag(ifNoneMatch: string | null, etag: string): boolean {
  return (ifNoneMatch ?? "").split(",").some((each) => ["*", etag].includes(each.trim().replace(/^W\//, "")));
}

/** Returns the fields that a 304 has, too. */
function forCaches(header: Readonly<Record<string, string>>): Readonly<Record<string, string>> {
  return Object.fromEntries(
    Object.entries(header).filter(([name]) => ["cache-control", "etag", "vary"].includes(name)),
  );
}
