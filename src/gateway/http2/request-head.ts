/** The header of a request, taken apart. The same object may stand for many requests: it is not to be changed. */
export interface RequestHead {
  /** All fields, pseudo-header fields among them: name, value, name, value, … */
  readonly fields: readonly string[];
  readonly method: string;
  readonly path: string;
  readonly scheme: string;
  /** `undefined` when it was not sent; `host` is then there. */
  readonly authority: string | undefined;
  /** `undefined` when it was not sent. */
  readonly contentLength: number | undefined;
  /** The client waits to be told to send the body (RFC 9110 §10.1.1). */
  readonly expectsContinue: boolean;
}

/**
 * Takes the header of a request apart, if it is one (RFC 9113 §8.2, §8.3.1).
 *
 * @returns `undefined` for a malformed header, which is refused, never repaired
 */
export function readRequestHead(fields: readonly string[]): RequestHead | undefined {
  const found: Found = { host: undefined, contentLength: undefined, expectsContinue: false };
  const pseudo: Record<string, string> = {};
  let regular = false;
  for (let i = 0; i < fields.length; i += 2) {
    const name = fields[i] as string;
    const value = fields[i + 1] as string;
    if (name.charCodeAt(0) === colon) {
      // §8.3: known ones only, each once, all before the regular fields.
      if (regular || !requestPseudoFields.has(name) || pseudo[name] !== undefined) return undefined;
      pseudo[name] = value;
    } else {
      regular = true;
      if (!isRegularField(name, value) || !isConsistent(name, value, found)) return undefined;
    }
  }
  return toHead(fields, pseudo, found);
}

/** Whether a trailer section is well formed: no pseudo-header fields (RFC 9113 §8.1). */
export function isTrailer(fields: readonly string[]): boolean {
  for (let i = 0; i < fields.length; i += 2) {
    const name = fields[i] as string;
    if (name.charCodeAt(0) === colon || !isRegularField(name, fields[i + 1] as string)) return false;
  }
  return true;
}

/** What a header says by its regular fields; some of it must not be said in two ways. */
interface Found {
  host: string | undefined;
  contentLength: number | undefined;
  expectsContinue: boolean;
}

function isConsistent(name: string, value: string, found: Found): boolean {
  if (name === "content-length") {
    // RFC 9110 §8.6: digits, once. A second one, also of the same value, may be refused, and is where bodies are
    // smuggled.
    const before = found.contentLength;
    found.contentLength = Number(value);
    return before === undefined && /^[0-9]{1,15}$/.test(value);
  }
  if (name === "expect") found.expectsContinue ||= value.toLowerCase() === "100-continue";
  if (name === "host") {
    const before = found.host;
    found.host = value;
    // RFC 9110 §7.2: a second one is an error.
    return before === undefined && authoritySyntax.test(value);
  }
  return true;
}

function toHead(fields: readonly string[], pseudo: Record<string, string>, found: Found): RequestHead | undefined {
  const { ":method": method, ":path": path, ":scheme": scheme, ":authority": authority } = pseudo;
  const { host, contentLength, expectsContinue } = found;
  if (method === undefined || !isToken(method)) return undefined;
  if (authority !== undefined && !authoritySyntax.test(authority)) return undefined;
  if (method === "CONNECT") {
    // §8.5: no scheme and no path. Nothing here is a proxy: it will be answered that there is no such path.
    if (path !== undefined || scheme !== undefined || authority === undefined) return undefined;
    return { fields, method, path: "", scheme: "", authority, contentLength, expectsContinue };
  }
  // §8.3.1: "*" stands for no path at all, which only OPTIONS has.
  if (path === undefined || !pathSyntax.test(path) || (path === "*" && method !== "OPTIONS")) return undefined;
  if (scheme === undefined || !schemeSyntax.test(scheme)) return undefined;
  // §8.3.1: one of the two is there, and they name the same.
  if (authority === undefined && host === undefined) return undefined;
  const differs = authority !== undefined && host !== undefined && authority.toLowerCase() !== host.toLowerCase();
  return differs ? undefined : { fields, method, path, scheme, authority, contentLength, expectsContinue };
}

const colon = 0x3a;
const requestPseudoFields: ReadonlySet<string> = new Set([":method", ":scheme", ":authority", ":path"]);

// §8.3.1: a path begins with a slash, but for "OPTIONS *". Octets above ASCII are left to who knows the paths.
const pathSyntax = /^(?:\/[\x21-\x7e\x80-\xff]*|\*)$/;
// RFC 3986 §3.1.
const schemeSyntax = /^[A-Za-z][A-Za-z0-9+\-.]*$/;
// The characters of RFC 3986 §3.2 without those of userinfo, which §8.3.1 forbids. What stands where is left to who
// knows the hosts.
const authoritySyntax = /^[A-Za-z0-9\-._~!$&'()*+,;=%:[\]]+$/;

// §8.2.2: these speak of the connection in HTTP/1.1, and mean nothing here.
const connectionFields: ReadonlySet<string> = new Set([
  "connection",
  "proxy-connection",
  "keep-alive",
  "transfer-encoding",
  "upgrade",
]);

function isRegularField(name: string, value: string): boolean {
  if (!isLowerCaseToken(name) || connectionFields.has(name) || !isFieldValue(value)) return false;
  return name !== "te" || value.toLowerCase() === "trailers";
}

// RFC 9110 §5.6.2 token, without the upper-case letters that RFC 9113 §8.2.1 forbids.
function isLowerCaseToken(text: string): boolean {
  return /^[!#$%&'*+\-.^_`|~0-9a-z]+$/.test(text);
}

function isToken(text: string): boolean {
  return /^[!#$%&'*+\-.^_`|~0-9A-Za-z]+$/.test(text);
}

/** §8.2.1: no NUL, CR or LF anywhere, no white space at either end; the other controls are refused as RFC 9110 §5.5 lets us. */
function isFieldValue(value: string): boolean {
  for (let at = 0; at < value.length; at++) {
    const octet = value.charCodeAt(at);
    if (octet < 0x20 ? octet !== 0x09 : octet === 0x7f) return false;
  }
  const first = value.charCodeAt(0);
  const last = value.charCodeAt(value.length - 1);
  return first !== 0x20 && first !== 0x09 && last !== 0x20 && last !== 0x09;
}
