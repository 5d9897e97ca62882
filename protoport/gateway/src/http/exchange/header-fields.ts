import { withCode } from "../problems.ts";

/** Header or trailer fields in the order sent: name, value, name, value, … Node's raw headers need no copy. */
export type HeaderFields = readonly string[];

/**
 * Received header or trailer fields. A connection returns the same array for identical header bytes, so the array can
 * cache derived values. A cache property costs 0.05 µs per array, and a WeakMap entry 0.6 µs.
 */
export interface CachedFields extends HeaderFields {
  /** A value derived from the fields. The code that forwards the fields sets this value. */
  derived?: unknown;
}

/** Returns whether a string is a token (RFC 9110 §5.6.2), such as a field name. */
export function isToken(text: string): boolean {
  return token.test(text);
}

/** A regular expression's source for a token (RFC 9110 §5.6.2). */
export const tokenPattern = "[!#$%&'*+\\-.^_`|~0-9A-Za-z]+";
const token = new RegExp(`^${tokenPattern}$`);

/**
 * Checks that HTTP allows a field. Each character in the value represents one byte.
 *
 * @throws TypeError for a name that is not a token (RFC 9110 §5.1), or a value that might begin another field (§5.5)
 */
export function requireField(name: string, value: string): void {
  if (!isToken(name)) throw withCode(new TypeError(`header name "${name}" is not valid`), "ERR_HEADER_FIELD");
  if (!fieldValue.test(value)) {
    throw withCode(
      new TypeError(`the value of header "${name}" contains a character that is not allowed`),
      "ERR_HEADER_FIELD",
    );
  }
}

/** Checks that HTTP allows all fields in an array. Throws like {@link requireField}. */
export function requireFields(fields: HeaderFields): void {
  for (let i = 0; i < fields.length; i += 2) requireField(fields[i] ?? "", fields[i + 1] ?? "");
}

// Characters above U+00FF are not allowed, because truncating one to a byte could produce a line break.
const fieldValue = /^[\t\x20-\x7e\x80-\xff]*$/;

/** Header fields that many responses share. The fields are encoded only once. */
export class PreparedHeaderFields extends Array<string> {
  /** The encoded lines for HTTP/1.1, or `undefined` before the first use. */
  lines: string | undefined;
  /** The encoded header block for HTTP/2, or `undefined` before the first use. */
  block: Uint8Array | undefined;
}

/** Prepares fields: name, value, name, value, … */
export function prepareHeaderFields(...fields: readonly string[]): PreparedHeaderFields {
  return new PreparedHeaderFields(...fields);
}

/**
 * Returns a field's value, or `null` if it was not sent. Names are case-insensitive (RFC 9110 §5.1). Several fields
 * with one name are joined by commas (RFC 9110 §5.3), and cookie fields by semicolons.
 */
export function readHeaderField(fields: HeaderFields, name: string): string | null {
  let value: string | null = null;
  const lowerName = name.toLowerCase();
  for (let i = 0; i < fields.length; i += 2) {
    const candidate = fields[i] ?? "";
    // Most names already differ in length. HTTP/2 names are already in lower case (RFC 9113 §8.2.1).
    if (candidate.length !== name.length) continue;
    if (candidate !== name && candidate.toLowerCase() !== lowerName) continue;
    if (value === null) value = fields[i + 1] ?? "";
    // HTTP/2 clients may split a cookie into several fields, which are joined by a semicolon (RFC 9113 §8.2.3).
    else value += (lowerName === "cookie" ? "; " : ", ") + fields[i + 1];
  }
  return value;
}

/** The fields that are read for every request, collected in one pass, with values as in {@link readHeaderField}. */
export class CommonHeaderFields {
  /** The field list's size in bytes, with 32 more per field (RFC 9113 §6.5.2), which also limits many small fields. */
  listBytes = 0;
  host: string | null = null;
  authorization: string | null = null;
  contentType: string | null = null;
  contentLength: string | null = null;
  contentEncoding: string | null = null;
  transferEncoding: string | null = null;
  expect: string | null = null;
  connection: string | null = null;
  xRequestId: string | null = null;

  constructor(fields: HeaderFields) {
    for (let i = 0; i < fields.length; i += 2) {
      const sent = fields[i] ?? "";
      const value = fields[i + 1] ?? "";
      this.listBytes += sent.length + value.length + 32;
      const candidates = commonNames[sent.length];
      if (candidates === undefined) continue;
      for (const [name, member] of candidates) {
        if (sent !== name && sent.toLowerCase() !== name) continue;
        const before = this[member];
        this[member] = before === null ? value : `${before}, ${value}`;
      }
    }
  }
}

type CommonName = Exclude<keyof CommonHeaderFields, "listBytes">;

/** The field names that {@link CommonHeaderFields} collects, with their members, by length of the name. */
const commonNames = /* @__PURE__ */ findCommonNames();

function findCommonNames(): (readonly [name: string, member: CommonName])[][] {
  const byLength: [name: string, member: CommonName][][] = [];
  const { listBytes: _, ...withoutAny } = new CommonHeaderFields([]);
  for (const member of Object.keys(withoutAny) as CommonName[]) {
    const name = member.replace(/[A-Z]/g, (capital) => `-${capital.toLowerCase()}`);
    (byLength[name.length] ??= []).push([name, member]);
  }
  return byLength;
}

/** Reads request fields by name, as {@link readHeaderField} does. Fetch's `Headers` implements this interface. */
export interface HeaderReader {
  get(name: string): string | null;
}
