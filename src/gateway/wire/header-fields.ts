import { isFieldValue } from "../rest/index.ts";
import type { HeaderReader } from "./admit.ts";

/**
 * Header or trailer fields as they are on the wire: name, value, name, value, …, in the order sent.
 *
 * Both of node's HTTP servers give and take this form, so fields that nobody looks at are never copied.
 */
export type HeaderFields = readonly string[];

/**
 * Reads one field of a list, names compared without regard to case (RFC 9110 §5.1).
 *
 * @returns the value; several fields of one name joined by ", " (RFC 9110 §5.3), the parts of a cookie by "; ";
 * `null` without any
 */
export function readField(fields: HeaderFields, name: string): string | null {
  let value: string | null = null;
  for (let i = 0; i < fields.length; i += 2) {
    const candidate = fields[i] as string;
    // The length settles nearly every comparison; HTTP/2 names are lower case already (RFC 9113 §8.2.1).
    if (candidate.length !== name.length || !isSameName(candidate, name)) continue;
    if (value === null) value = fields[i + 1] as string;
    // HTTP/2 clients send a cookie in parts, which only a semicolon makes one again (RFC 9113 §8.2.3).
    else value += (name.toLowerCase() === "cookie" ? "; " : ", ") + fields[i + 1];
  }
  return value;
}

/**
 * The size of a field list by RFC 9113 §6.5.2: 32 bytes for each field beside its text. So many small fields, which
 * cost more than their text, are bounded as well, and a list has one size whatever the HTTP version.
 */
export function fieldListBytes(fields: HeaderFields): number {
  // A field is two texts.
  let bytes = fields.length * 16;
  for (const text of fields) bytes += text.length;
  return bytes;
}

/** Compares names of one length without regard to the case of letters. Lower-casing both costs five times as much. */
function isSameName(one: string, other: string): boolean {
  if (one === other) return true;
  for (let at = 0; at < one.length; at++) {
    const character = one.charCodeAt(at);
    const lower = character | caseBit;
    if (character === other.charCodeAt(at)) continue;
    if (lower !== (other.charCodeAt(at) | caseBit) || lower < letterA || lower > letterZ) return false;
  }
  return true;
}

// The bit that tells a small letter of ASCII from its capital.
const caseBit = 0x20;
const letterA = 0x61;
const letterZ = 0x7a;

/** A field list as the {@link HeaderReader} that `admit` takes. */
export class FieldReader implements HeaderReader {
  readonly #fields: HeaderFields;

  constructor(fields: HeaderFields) {
    this.#fields = fields;
  }

  get(name: string): string | null {
    return readField(this.#fields, name);
  }
}

/**
 * The fields of a header or trailer that may be sent with a call.
 *
 * What a handler has copied from some other answer may speak of that one's connection or length, or hold
 * characters that no field may. Those are left out: HTTP/2 has no way at all to send them (RFC 9113 §8.2).
 */
export function toFields(headers: Headers): string[] {
  const fields: string[] = [];
  for (const [name, value] of headers) {
    if (!ofTheConnection.has(name) && isFieldValue(value)) fields.push(name, value);
  }
  return fields;
}

/**
 * A `Headers` object that is built from its fields when first looked at.
 *
 * Building the real thing costs more than a microsecond and six allocations, and most calls never ask.
 * What is built then is the platform's own; until then this stands in for it: `instanceof` holds,
 * and `new Headers(it)` and `fetch` read it by its iterator.
 */
export class LazyHeaders implements Headers {
  #fields: HeaderFields | undefined;
  #headers: Headers | undefined;

  /** @param fields - pseudo-header fields (RFC 9113 §8.3) are left out */
  constructor(fields: HeaderFields) {
    this.#fields = fields;
  }

  /** The fields it was made of as long as nobody looked closer, else what it holds now. */
  get fields(): HeaderFields {
    return this.#fields ?? toFields(this.#build());
  }

  /** Whether nobody has looked closer yet, so that {@link fields} is the very list it was made of. */
  get pristine(): boolean {
    return this.#fields !== undefined;
  }

  get(name: string): string | null {
    // Headers refuses what cannot be a name, pseudo-header fields among it.
    if (this.#fields === undefined || !token.test(name)) return this.#build().get(name);
    return readField(this.#fields, name);
  }

  has(name: string): boolean {
    return this.get(name) !== null;
  }

  append(name: string, value: string): void {
    this.#build().append(name, value);
  }

  set(name: string, value: string): void {
    this.#build().set(name, value);
  }

  delete(name: string): void {
    this.#build().delete(name);
  }

  getSetCookie(): string[] {
    return this.#build().getSetCookie();
  }

  forEach(callback: (value: string, key: string, parent: Headers) => void, thisArg?: unknown): void {
    for (const [name, value] of this) callback.call(thisArg, value, name, this);
  }

  keys(): ReturnType<Headers["keys"]> {
    return this.#build().keys();
  }

  values(): ReturnType<Headers["values"]> {
    return this.#build().values();
  }

  entries(): ReturnType<Headers["entries"]> {
    return this.#build().entries();
  }

  [Symbol.iterator](): ReturnType<Headers["entries"]> {
    return this.#build().entries();
  }

  get [Symbol.toStringTag](): string {
    return "Headers";
  }

  #build(): Headers {
    if (this.#headers !== undefined) return this.#headers;
    const headers = new Headers();
    const fields = this.#fields ?? [];
    for (let i = 0; i < fields.length; i += 2) {
      const name = fields[i] as string;
      if (name.charCodeAt(0) === colon) continue;
      if (name.length === 6 && name.toLowerCase() === "cookie") headers.set(name, readField(fields, "cookie") ?? "");
      else headers.append(name, fields[i + 1] as string);
    }
    this.#headers = headers;
    this.#fields = undefined;
    return headers;
  }
}

// For `instanceof`. Not `extends`: the constructor of Headers would build what this class is there to avoid. And not before
// somebody asks: to name Headers loads all of node's HTTP client, which is a fifth of a start.
Object.setPrototypeOf(LazyHeaders.prototype, new Proxy({}, { getPrototypeOf: () => Headers.prototype }));

// RFC 9110 §7.6.1, RFC 9113 §8.2.2; and what says where a message ends, which is the carrier's to say.
const ofTheConnection: ReadonlySet<string> = new Set([
  "connection",
  "content-length",
  "http2-settings",
  "keep-alive",
  "proxy-connection",
  "te",
  "trailer",
  "transfer-encoding",
  "upgrade",
]);

const colon = 0x3a;
// RFC 9110 §5.6.2.
const token = /^[!#$%&'*+\-.^_`|~0-9A-Za-z]+$/;
