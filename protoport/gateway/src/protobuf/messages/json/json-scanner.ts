import { FieldProblem, quoteValue } from "./field-problem.ts";

/** The kind of a JSON value, as its first character shows. */
export type JsonKind = "object" | "array" | "string" | "number" | "true" | "false" | "null";

/** Maximum nesting depth of objects and arrays. The limit is the same as protobuf's recursion limit for messages. */
export const maxJsonDepth = 100;

/** A scanner position to return to. */
interface JsonMark {
  readonly at: number;
  readonly depth: number;
}

// Minimum characters in a substring that V8 stores as a view. A view keeps the complete text alive.
const minViewLength = 13;
// Minimum characters in a text from which substrings are copied. Keeping a shorter text alive costs less than copying.
const minCopiedText = 1024;

// Matches a number (RFC 8259 §6) at the scanner's position, because the pattern is sticky.
const numberToken = /-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?/y;

// Matches the characters that RFC 8259 §7 allows after a backslash. The pattern is sticky.
const escapeToken = /["\\/bfnrt]|u[0-9A-Fa-f]{4}/y;

// The characters that a value can begin with (RFC 8259 §3).
const startOfValue = /["[{tfn\d-]/;

/**
 * Reads a JSON text value by value, as strictly as RFC 8259 allows.
 *
 * Numbers are returned as their source text, because a double cannot hold every int64. Strings with a lone surrogate
 * are refused, because they are not Unicode text. Nesting beyond {@link maxJsonDepth} is refused, too. The scanner
 * creates only the values that the caller reads.
 *
 * Every method throws a {@link FieldProblem} if the text at the current position is not what the method reads.
 *
 * @example
 * ```ts
 * scanner.openObject();
 * for (let key = scanner.firstKey(); key !== undefined; key = scanner.nextKey()) scanner.skipValue();
 * scanner.finish();
 * ```
 */
export class JsonScanner {
  readonly #text: string;
  #at = 0;
  #depth = 0;

  constructor(text: string) {
    this.#text = text;
  }

  /** Returns the next value's kind. */
  peek(): JsonKind {
    switch (this.#skipSpace()) {
      case 0x7b: // {
        return "object";
      case 0x5b: // [
        return "array";
      case 0x22: // "
        return "string";
      case 0x74: // t
        return "true";
      case 0x66: // f
        return "false";
      case 0x6e: // n
        return "null";
      default:
        return "number";
    }
  }

  /** Reads a string, which must be the next value. */
  readString(): string {
    const start = this.#skipSpace() === 0x22 ? this.#at + 1 : this.#at;
    const escaped = this.skipString();
    const end = this.#at - 1;
    return escaped ? this.#unescape(start, end) : this.#detach(this.#text.slice(start, end));
  }

  /** Skips a string, which must be the next value. Returns whether the string has escapes. */
  skipString(): boolean {
    if (this.#skipSpace() !== 0x22) throw this.#unexpectedProblem("a string");
    const text = this.#text;
    let escaped = false;
    for (let at = this.#at + 1; at < text.length; at++) {
      const unit = text.charCodeAt(at);
      if (unit === 0x22) {
        this.#at = at + 1;
        return escaped;
      }
      if (unit < 0x20) throw this.#problemAt(at, "control character in a string");
      if (unit !== 0x5c) continue;
      escaped = true;
      escapeToken.lastIndex = ++at;
      if (!escapeToken.test(text)) throw this.#problemAt(at, "unknown escape in a string");
    }
    throw this.#problemAt(text.length, "unterminated string");
  }

  /** Reads a number, which must be the next value, and returns its source text. */
  readNumber(): string {
    this.#skipSpace();
    numberToken.lastIndex = this.#at;
    const token = numberToken.exec(this.#text)?.[0];
    if (token === undefined) throw this.#unexpectedProblem("a value");
    this.#at += token.length;
    return token;
  }

  /** Reads the literal, which must be the next value. */
  readLiteral(literal: "true" | "false" | "null"): void {
    this.#skipSpace();
    if (!this.#text.startsWith(literal, this.#at)) throw this.#unexpectedProblem("a value");
    this.#at += literal.length;
  }

  /** Reads the next value, which must be a scalar. Returns a string's content, and any other value's source text. */
  readText(): string {
    const kind = this.peek();
    if (kind === "string") return this.readString();
    if (kind !== "true" && kind !== "false" && kind !== "null") return this.readNumber();
    this.readLiteral(kind);
    return kind;
  }

  /** Enters an object, which must be the next value. Call {@link firstKey} next. */
  openObject(): void {
    this.#open(0x7b, "an object");
  }

  /** Reads the first key after {@link openObject}. Leaves an empty object and returns `undefined`. */
  firstKey(): string | undefined {
    return this.#skipSpace() === 0x7d ? this.#close() : this.#readKey();
  }

  /** Reads the next key after a value. Leaves the object at its end and returns `undefined`. */
  nextKey(): string | undefined {
    const unit = this.#skipSpace();
    if (unit === 0x7d) return this.#close();
    if (unit !== 0x2c) throw this.#unexpectedProblem('"," or "}"');
    this.#at++;
    return this.#readKey();
  }

  /** Reads an object without duplicate keys, which must be the next value. `readValue` reads each key's value. */
  readObject(readValue: (key: string) => void): void {
    const seenKeys = new Set<string>();
    this.openObject();
    for (let key = this.firstKey(); key !== undefined; key = this.nextKey()) {
      if (seenKeys.has(key)) throw new FieldProblem(`key ${quoteValue(key)} is set more than once`);
      seenKeys.add(key);
      readValue(key);
    }
  }

  /** Reads an array, which must be the next value. `readItem` reads each item. */
  readArray(readItem: () => void): void {
    this.#open(0x5b, "an array");
    if (this.#skipSpace() === 0x5d) return this.#close();
    for (;;) {
      readItem();
      const unit = this.#skipSpace();
      if (unit === 0x5d) return this.#close();
      if (unit !== 0x2c) throw this.#unexpectedProblem('"," or "]"');
      this.#at++;
    }
  }

  /** Skips the next value, and checks its syntax as strictly as reading does. */
  skipValue(): void {
    const kind = this.peek();
    if (kind === "object") this.readObject(() => this.skipValue());
    else if (kind === "array") this.readArray(() => this.skipValue());
    else this.readText();
  }

  /**
   * Skips the next value without a check for duplicate keys, and therefore faster than {@link skipValue}. The caller
   * must discard the value, or read it later.
   */
  skipSyntax(): void {
    const kind = this.peek();
    if (kind === "string") return void this.skipString();
    if (kind === "array") return this.readArray(() => this.skipSyntax());
    if (kind !== "object") return void this.readText();
    this.openObject();
    if (this.#skipSpace() === 0x7d) return this.#close();
    for (;;) {
      this.skipString();
      if (this.#skipSpace() !== 0x3a) throw this.#unexpectedProblem('":"');
      this.#at++;
      this.skipSyntax();
      const unit = this.#skipSpace();
      if (unit === 0x7d) return this.#close();
      if (unit !== 0x2c) throw this.#unexpectedProblem('"," or "}"');
      this.#at++;
    }
  }

  /** The position in the text, in characters. After {@link peek}, the position is the start of the next value. */
  get at(): number {
    return this.#at;
  }

  /** Returns the current position, for {@link rewind}. */
  mark(): JsonMark {
    return { at: this.#at, depth: this.#depth };
  }

  /** Goes back to a position that {@link mark} returned. */
  rewind(mark: JsonMark): void {
    this.#at = mark.at;
    this.#depth = mark.depth;
  }

  /** Checks that only white space follows the current position. */
  finish(): void {
    this.#skipSpace();
    if (this.#at < this.#text.length) throw this.#unexpectedProblem("the end of the text");
  }

  /** Returns a substring of the text. Copies the substring if it would keep a much longer text alive. */
  #detach(part: string): string {
    const { length } = this.#text;
    const keepsLittle = part.length < minViewLength || part.length > length / 8 || length < minCopiedText;
    // Concatenating and slicing is the cheapest way to make V8 copy the substring.
    return keepsLittle ? part : ` ${part}`.slice(1);
  }

  #readKey(): string {
    const key = this.readString();
    if (this.#skipSpace() !== 0x3a) throw this.#unexpectedProblem('":"');
    this.#at++;
    return key;
  }

  #open(unit: number, what: string): void {
    if (this.#skipSpace() !== unit) throw this.#typeProblem(what);
    if (++this.#depth > maxJsonDepth) throw new FieldProblem(`nested deeper than ${maxJsonDepth} levels`);
    this.#at++;
  }

  #close(): undefined {
    this.#at++;
    this.#depth--;
  }

  #unescape(start: number, end: number): string {
    const value = String(JSON.parse(this.#text.slice(start - 1, end + 1)));
    // Only escapes can produce a lone surrogate. RFC 8259 §8.2 does not define a lone surrogate, and UTF-8 cannot
    // represent it.
    if (!value.isWellFormed()) throw this.#problemAt(start, "lone surrogate in a string");
    return value;
  }

  // Skips white space (RFC 8259 §2). Returns the UTF-16 unit after it, or NaN at the end of the text.
  #skipSpace(): number {
    for (;;) {
      const unit = this.#text.charCodeAt(this.#at);
      if (unit !== 0x20 && unit !== 0x0a && unit !== 0x0d && unit !== 0x09) return unit;
      this.#at++;
    }
  }

  #typeProblem(type: string): FieldProblem {
    const found = this.#text.charAt(this.#at);
    if (!startOfValue.test(found)) return this.#unexpectedProblem(type);
    return new FieldProblem(`must be ${type}, got ${quoteValue(found)} at character ${this.#at + 1}`);
  }

  #unexpectedProblem(expected: string): FieldProblem {
    const found = this.#at < this.#text.length ? quoteValue(this.#text.charAt(this.#at)) : "the end of the text";
    return this.#problemAt(this.#at, `expected ${expected}, got ${found}`);
  }

  #problemAt(at: number, what: string): FieldProblem {
    return new FieldProblem(`not valid JSON: ${what} at character ${at + 1}`);
  }
}
