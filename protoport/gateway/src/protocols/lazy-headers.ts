import { type HeaderFields, isToken, fieldsNotSentAsMetadata, readHeaderField } from "../http/index.ts";

/**
 * Returns whether a field may be sent with a call. Fields that describe the connection and fields with control
 * characters (RFC 9110 §5.5) must not be sent. A `Headers` object accepts control characters.
 */
export function isSendable(name: string, value: string): boolean {
  return !fieldsNotSentAsMetadata.has(name) && !controlCharacter.test(value);
}

// A tab is the only control character allowed in a field.
// oxlint-disable-next-line no-control-regex
const controlCharacter = /[\0-\x08\x0a-\x1f\x7f]/;

/**
 * Returns the header or trailer fields that may be sent with a call.
 *
 * A handler may copy another server's response fields, which may describe that response's connection or length, or
 * contain forbidden characters. HTTP/2 cannot send such fields (RFC 9113 §8.2), so they are omitted.
 */
export function toFields(headers: Headers): string[] {
  const fields: string[] = [];
  for (const [name, value] of headers) {
    if (isSendable(name, value)) fields.push(name, value);
  }
  return fields;
}

/**
 * A `Headers` object that is built from a list of fields on first use.
 *
 * Building a `Headers` object costs more than a microsecond and six allocations, and most calls never use it. Once
 * built, the lazy object delegates to the platform's object. `lazy instanceof Headers` is true, and `new Headers(lazy)`
 * and `fetch` read the lazy object through its iterator.
 */
export interface LazyHeaders extends Headers {
  /** Whether no `Headers` object has been built, and {@link fields} is still the original list. */
  readonly isPristine: boolean;
  /** The original list of fields until a `Headers` object is built, then the current fields. */
  readonly fields: HeaderFields;
  /** The platform's `Headers` object, built on first use. */
  readonly built: Headers;
}

class HeadersOfFields implements LazyHeaders {
  readonly #fields: HeaderFields;
  #headers: Headers | undefined;

  constructor(fields: HeaderFields) {
    this.#fields = fields;
  }

  get isPristine(): boolean {
    return this.#headers === undefined;
  }

  get fields(): HeaderFields {
    return this.#headers === undefined ? this.#fields : toFields(this.#headers);
  }

  // The getter is public, because a private method would take memory in every object.
  get built(): Headers {
    return (this.#headers ??= toHeaders(this.#fields));
  }

  get(name: string): string | null {
    // A real Headers object rejects invalid names, including pseudo-header field names.
    if (!this.isPristine || !isToken(name)) return this.built.get(name);
    return readHeaderField(this.#fields, name);
  }

  has(name: string): boolean {
    return this.get(name) !== null;
  }

  append(name: string, value: string): void {
    this.built.append(name, value);
  }

  set(name: string, value: string): void {
    this.built.set(name, value);
  }

  delete(name: string): void {
    this.built.delete(name);
  }

  getSetCookie(): string[] {
    return this.built.getSetCookie();
  }

  forEach(callback: (value: string, key: string, parent: Headers) => void, thisArg?: unknown): void {
    for (const [name, value] of this) callback.call(thisArg, value, name, this);
  }

  keys(): ReturnType<Headers["keys"]> {
    return this.built.keys();
  }

  values(): ReturnType<Headers["values"]> {
    return this.built.values();
  }

  entries(): ReturnType<Headers["entries"]> {
    return this.built.entries();
  }

  [Symbol.iterator](): ReturnType<Headers["entries"]> {
    return this.built.entries();
  }

  get [Symbol.toStringTag](): string {
    return "Headers";
  }
}

/**
 * Creates {@link LazyHeaders}. Pseudo-header fields (RFC 9113 §8.3) are ignored. The constant has a type annotation,
 * because the class's type would declare members that only Node's `Headers` has.
 */
export const LazyHeaders: new (fields: HeaderFields) => LazyHeaders = HeadersOfFields;

// Node's `util.inspect` and `console.log` print the platform's object.
Object.defineProperty(HeadersOfFields.prototype, Symbol.for("nodejs.util.inspect.custom"), {
  value(this: HeadersOfFields): Headers {
    return this.built;
  },
});

/** Returns whether a response still has its original header and trailer. */
export function areUnchanged(header: Headers, trailer: Headers): boolean {
  const isUnchanged = (headers: Headers): boolean => headers instanceof LazyHeaders && headers.isPristine;
  return isUnchanged(header) && isUnchanged(trailer);
}

function toHeaders(fields: HeaderFields): Headers {
  const headers = new Headers();
  for (let i = 0; i < fields.length; i += 2) {
    const name = fields[i] ?? "";
    if (name.charCodeAt(0) === colon) continue;
    if (name.length === 6 && name.toLowerCase() === "cookie")
      headers.set(name, readHeaderField(fields, "cookie") ?? "");
    else headers.append(name, fields[i + 1] ?? "");
  }
  return headers;
}

// Makes `instanceof` work without `extends`. A subclass would call the Headers constructor, which this class avoids.
// The proxy delays the first access to Headers, which loads node's HTTP client and takes a fifth of the start-up time.
Object.setPrototypeOf(HeadersOfFields.prototype, new Proxy({}, { getPrototypeOf: () => Headers.prototype }));

const colon = 0x3a;

/**
 * Returns the fields to send for a response header or trailer.
 *
 * @param own - the protocol's fields, which are sent even if an interceptor replaces the Headers object
 */
export function headerFieldsToSend(headers: Headers, own: HeaderFields): HeaderFields {
  if (headers instanceof LazyHeaders) return headers.fields;
  const fields = toFields(headers);
  // The protocol's fields replace those with the same name in `headers`.
  return [...own, ...fields.filter((_, at) => readHeaderField(own, fieldNameAt(fields, at)) === null)];
}

/**
 * Returns a response header's fields, with the protocol's own values for reserved fields. A handler's metadata must set
 * neither the message compression nor the call status, which gRPC-Web clients also read from the header.
 */
export function withOwnReserved(fields: HeaderFields, own: HeaderFields): HeaderFields {
  const reservedOf = (all: HeaderFields): string[] => all.filter((_, at) => reservedNames.test(fieldNameAt(all, at)));
  const ownReserved = reservedOf(own);
  const sentReserved = reservedOf(fields);
  if (
    sentReserved.length === ownReserved.length &&
    sentReserved.every((sent, at) => at % 2 === 0 || readHeaderField(own, fieldNameAt(sentReserved, at)) === sent)
  )
    return fields;
  return [...fields.filter((_, at) => !reservedNames.test(fieldNameAt(fields, at))), ...ownReserved];
}

/** Returns the field name for an index in a list of names and values. */
function fieldNameAt(fields: HeaderFields, at: number): string {
  return fields[at - (at % 2)] ?? "";
}

const reservedNames =
  /^(?:grpc-(?:status|message|status-details-bin|encoding|accept-encoding|timeout)|connect-(?:content-encoding|accept-encoding|protocol-version|timeout-ms))$/i;
