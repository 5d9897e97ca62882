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
 * @param name - in lower case
 * @returns the value; several fields of one name joined by ", " (RFC 9110 §5.3); `null` without any
 */
export function readField(fields: HeaderFields, name: string): string | null {
  let value: string | null = null;
  for (let i = 0; i < fields.length; i += 2) {
    const candidate = fields[i] as string;
    // The length settles nearly every comparison; HTTP/2 names are lower case already (RFC 9113 §8.2.1).
    if (candidate.length !== name.length || (candidate !== name && candidate.toLowerCase() !== name)) continue;
    value = value === null ? (fields[i + 1] as string) : `${value}, ${fields[i + 1]}`;
  }
  return value;
}

/** Presents a field list as the {@link HeaderReader} that `admit` takes. */
export function toHeaderReader(fields: HeaderFields): HeaderReader {
  return { get: (name) => readField(fields, name.toLowerCase()) };
}

/** The members of `Headers`, typed as the methods they are: TypeScript's own typing forbids to override them. */
interface HeadersMethods {
  get(name: string): string | null;
  has(name: string): boolean;
  append(name: string, value: string): void;
  set(name: string, value: string): void;
  delete(name: string): void;
  getSetCookie(): string[];
  forEach(callback: (value: string, key: string, parent: Headers) => void, thisArg?: unknown): void;
  keys(): ReturnType<Headers["keys"]>;
  values(): ReturnType<Headers["values"]>;
  entries(): ReturnType<Headers["entries"]>;
  [Symbol.iterator](): ReturnType<Headers["entries"]>;
}
const BuiltinHeaders: new () => HeadersMethods = Headers;

/**
 * A `Headers` object that is filled from its fields when first looked at.
 *
 * Building the real thing from six fields costs more than a microsecond, and most calls never ask.
 * It is a true `Headers`: `instanceof`, `new Headers(it)` and `fetch` see no difference.
 */
export class LazyHeaders extends BuiltinHeaders {
  #fields: HeaderFields | undefined;

  /** @param fields - pseudo-header fields (RFC 9113 §8.3) are left out */
  constructor(fields: HeaderFields) {
    super();
    this.#fields = fields;
  }

  /** The fields it was made of as long as nobody looked closer, else what it holds now. */
  get fields(): HeaderFields {
    return this.#fields ?? Array.from(super.entries()).flat();
  }

  /** Whether nobody has looked closer yet, so that {@link fields} is the very list it was made of. */
  get pristine(): boolean {
    return this.#fields !== undefined;
  }

  override get(name: string): string | null {
    return this.#fields === undefined ? super.get(name) : readField(this.#fields, name.toLowerCase());
  }

  override has(name: string): boolean {
    return this.#fields === undefined ? super.has(name) : readField(this.#fields, name.toLowerCase()) !== null;
  }

  override append(name: string, value: string): void {
    this.#fill();
    super.append(name, value);
  }

  override set(name: string, value: string): void {
    this.#fill();
    super.set(name, value);
  }

  override delete(name: string): void {
    this.#fill();
    super.delete(name);
  }

  override getSetCookie(): string[] {
    this.#fill();
    return super.getSetCookie();
  }

  override forEach(callback: (value: string, key: string, parent: Headers) => void, thisArg?: unknown): void {
    this.#fill();
    super.forEach(callback, thisArg);
  }

  override keys(): ReturnType<Headers["keys"]> {
    this.#fill();
    return super.keys();
  }

  override values(): ReturnType<Headers["keys"]> {
    this.#fill();
    return super.values();
  }

  override entries(): ReturnType<Headers["entries"]> {
    this.#fill();
    return super.entries();
  }

  // undici reads a foreign `Headers` through this when it is not the built-in function.
  override [Symbol.iterator](): ReturnType<Headers["entries"]> {
    return this.entries();
  }

  #fill(): void {
    const fields = this.#fields;
    if (fields === undefined) return;
    this.#fields = undefined;
    for (let i = 0; i < fields.length; i += 2) {
      const name = fields[i] as string;
      if (name.charCodeAt(0) !== colon) super.append(name, fields[i + 1] as string);
    }
  }
}

const colon = 0x3a;
