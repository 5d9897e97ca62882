import { CommonHeaderFields, isToken } from "../../http/index.ts";
import { colon, isRegularField } from "./header-blocks.ts";

/** A request's parsed header. Requests may share one object, so callers must not change the object. */
export interface Http2RequestHead {
  /** All fields, including pseudo-header fields: name, value, name, value, … */
  readonly fields: readonly string[];
  readonly common: CommonHeaderFields;
  readonly method: string;
  readonly path: string;
  /** Scheme, authority and path. The authority is `host` if the client sent no :authority. */
  readonly url: string;
  /** Value of :authority, or `undefined` if the client sent `host` instead. */
  readonly authority: string | undefined;
  /** Value of Content-Length, or `undefined` if the client sent none. */
  readonly contentLength: number | undefined;
  /** Whether the client waits for 100 Continue before sending the body (RFC 9110 §10.1.1). */
  readonly expectsContinue: boolean;
}

/**
 * Parses a request header (RFC 9113 §8.2, §8.3.1). Returns `undefined` if the header is malformed.
 *
 * @param listBytes - the field list's size, including the fields that the decoder has dropped
 */
export function readRequestHead(fields: readonly string[], listBytes: number): Http2RequestHead | undefined {
  const found: Found = { host: undefined, contentLength: undefined, expectsContinue: false };
  const pseudo: Record<string, string> = {};
  let hasRegularFields = false;
  for (let i = 0; i < fields.length; i += 2) {
    const name = fields[i] ?? "";
    const value = fields[i + 1] ?? "";
    if (name.charCodeAt(0) === colon) {
      // §8.3: only known pseudo-header fields are allowed, each once, before the regular fields.
      if (hasRegularFields || !requestPseudoHeaderFields.has(name) || pseudo[name] !== undefined) return undefined;
      pseudo[name] = value;
    } else {
      hasRegularFields = true;
      if (!isRegularField(name, value) || !isConsistent(name, value, found)) return undefined;
    }
  }
  const head = toHead(fields, pseudo, found);
  if (head !== undefined) head.common.listBytes = listBytes;
  return head;
}

/** Values from regular fields. Fields that are allowed only once are `undefined` before their first value. */
interface Found {
  host: string | undefined;
  contentLength: number | undefined;
  expectsContinue: boolean;
}

function isConsistent(name: string, value: string, found: Found): boolean {
  if (name === "content-length") {
    // Content-Length consists of digits (RFC 9110 §8.6). A second field could be used for request smuggling.
    const previous = found.contentLength;
    found.contentLength = Number(value);
    return previous === undefined && /^[0-9]{1,15}$/.test(value);
  }
  if (name === "expect") found.expectsContinue ||= value.toLowerCase() === "100-continue";
  if (name === "host") {
    const previous = found.host;
    found.host = value;
    // A second `host` field is an error (RFC 9110 §7.2).
    return previous === undefined && authoritySyntax.test(value);
  }
  return true;
}

function toHead(fields: readonly string[], pseudo: Record<string, string>, found: Found): Http2RequestHead | undefined {
  const { ":method": method, ":path": path, ":scheme": scheme, ":authority": authority } = pseudo;
  const { host, contentLength, expectsContinue } = found;
  const common = new CommonHeaderFields(fields);
  if (method === undefined || !isToken(method)) return undefined;
  if (authority !== undefined && !authoritySyntax.test(authority)) return undefined;
  if (method === "CONNECT") {
    // §8.5: CONNECT requests have neither a scheme nor a path. CONNECT is not supported, and gets status 400.
    if (path !== undefined || scheme !== undefined || authority === undefined) return undefined;
    return { fields, common, method, path: "", url: `://${authority}`, authority, contentLength, expectsContinue };
  }
  // §8.3.1: "*" as the path is allowed only for OPTIONS.
  if (path === undefined || !pathSyntax.test(path) || (path === "*" && method !== "OPTIONS")) return undefined;
  if (scheme === undefined || !schemeSyntax.test(scheme)) return undefined;
  // §8.3.1: a request requires :authority or `host`. If the client sends :authority and `host`, the values must agree.
  if (authority === undefined && host === undefined) return undefined;
  const hostDiffers = authority !== undefined && host !== undefined && authority.toLowerCase() !== host.toLowerCase();
  if (hostDiffers) return undefined;
  const url = `${scheme}://${authority ?? host ?? ""}${path}`;
  return { fields, common, method, path, url, authority, contentLength, expectsContinue };
}

const requestPseudoHeaderFields: ReadonlySet<string> = new Set([":method", ":scheme", ":authority", ":path"]);

// §8.3.1: a path starts with a slash, except in "OPTIONS *". The router validates non-ASCII bytes.
const pathSyntax = /^(?:\/[\x21-\x7e\x80-\xff]*|\*)$/;
// The syntax of a URI scheme (RFC 3986 §3.1).
const schemeSyntax = /^[A-Za-z][A-Za-z0-9+\-.]*$/;
// Allowed characters in an authority (RFC 3986 §3.2). RFC 9113 §8.3.1 forbids userinfo.
const authoritySyntax = /^[A-Za-z0-9\-._~!$&'()*+,;=%:[\]]+$/;
