import { FieldProblem, quote } from "./field-problem.ts";

/** What the next value of a JSON text is, told by its first character. */
export type JsonKind = "object" | "array" | "string" | "number" | "true" | "false" | "null";

/** Deepest nesting of objects and arrays, in levels: protobuf's own recursion limit for messages. */
export const jsonDepthMax = 100;

/** A place in the text to come back to. */
export interface JsonMark {
  readonly at: number;
  readonly depth: number;
}

// The literal escapes of RFC 8259 §7, by the character after the backslash.
const escapes: Readonly<Record<string, string>> = {
  '"': '"',
  "\\": "\\",
  "/": "/",
  b: "\b",
  f: "\f",
  n: "\n",
  r: "\r",
  t: "\t",
};

// The number grammar of RFC 8259 §6, wherever the scanner stands.
const numberToken = /-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?/y;
const hexDigits = /^[0-9A-Fa-f]{4}$/;

/**
 * Walks a JSON text of RFC 8259 value by value and refuses whatever the grammar refuses.
 *
 * Numbers are handed out as their source text: what an int64 is, nobody learns from a double. Strings
 * with a lone surrogate are refused (they are no Unicode text), as is nesting beyond {@link jsonDepthMax}.
 * Nothing is built that the caller does not ask for.
 *
 * Every method throws a {@link FieldProblem} where the text is not what the method reads.
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

  /** The kind of the value that comes next. */
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

  /** Reads the string that comes next. */
  readString(): string {
    if (this.#skipSpace() !== 0x22) throw this.#unexpected("a string");
    const start = ++this.#at;
    const text = this.#text;
    for (let at = start; at < text.length; at++) {
      const unit = text.charCodeAt(at);
      if (unit === 0x22) {
        this.#at = at + 1;
        return text.slice(start, at);
      }
      if (unit === 0x5c) return this.#readEscapedString(start, at);
      if (unit < 0x20) throw this.#problemAt(at, "a control character in a string");
    }
    throw this.#problemAt(text.length, "the text ends inside a string");
  }

  /** Reads the number that comes next and returns its source text. */
  readNumber(): string {
    this.#skipSpace();
    numberToken.lastIndex = this.#at;
    const token = numberToken.exec(this.#text)?.[0];
    if (token === undefined) throw this.#unexpected("a value");
    this.#at += token.length;
    return token;
  }

  /** Reads the literal `true`, `false` or `null` that comes next. */
  readLiteral(literal: "true" | "false" | "null"): void {
    this.#skipSpace();
    if (!this.#text.startsWith(literal, this.#at)) throw this.#unexpected("a value");
    this.#at += literal.length;
  }

  /** Steps into the object that comes next; {@link firstKey} follows. */
  openObject(): void {
    this.#open(0x7b, "an object");
  }

  /** Reads the first key of the object just opened; `undefined` when it is empty and now closed. */
  firstKey(): string | undefined {
    return this.#skipSpace() === 0x7d ? this.#close() : this.#readKey();
  }

  /** Reads the next key after a value; `undefined` when the object is now closed. */
  nextKey(): string | undefined {
    const unit = this.#skipSpace();
    if (unit === 0x7d) return this.#close();
    if (unit !== 0x2c) throw this.#unexpected('"," or "}"');
    this.#at++;
    return this.#readKey();
  }

  /** Steps into the array that comes next; {@link firstItem} follows. */
  openArray(): void {
    this.#open(0x5b, "an array");
  }

  /** Whether the array just opened has an item; if not, it is now closed. */
  firstItem(): boolean {
    if (this.#skipSpace() !== 0x5d) return true;
    this.#close();
    return false;
  }

  /** Whether another item follows; if not, the array is now closed. */
  nextItem(): boolean {
    const unit = this.#skipSpace();
    if (unit === 0x5d) {
      this.#close();
      return false;
    }
    if (unit !== 0x2c) throw this.#unexpected('"," or "]"');
    this.#at++;
    return true;
  }

  /** Reads past the value that comes next, as strictly as if it were wanted. */
  skipValue(): void {
    const kind = this.peek();
    switch (kind) {
      case "object":
        this.#skipObject();
        break;
      case "array":
        this.openArray();
        for (let more = this.firstItem(); more; more = this.nextItem()) this.skipValue();
        break;
      case "string":
        this.readString();
        break;
      case "number":
        this.readNumber();
        break;
      default:
        this.readLiteral(kind);
    }
  }

  /** Where the scanner stands, to return to with {@link rewind}. */
  mark(): JsonMark {
    return { at: this.#at, depth: this.#depth };
  }

  /** Goes back to a place of this text. */
  rewind(mark: JsonMark): void {
    this.#at = mark.at;
    this.#depth = mark.depth;
  }

  /** Makes sure that only white space follows. */
  finish(): void {
    this.#skipSpace();
    if (this.#at < this.#text.length) throw this.#unexpected("the end of the text");
  }

  #skipObject(): void {
    const seen = new Set<string>();
    this.openObject();
    for (let key = this.firstKey(); key !== undefined; key = this.nextKey()) {
      if (seen.has(key)) throw new FieldProblem(`key ${quote(key)} is set more than once`);
      seen.add(key);
      this.skipValue();
    }
  }

  #readKey(): string {
    const key = this.readString();
    if (this.#skipSpace() !== 0x3a) throw this.#unexpected('":"');
    this.#at++;
    return key;
  }

  #open(unit: number, what: string): void {
    if (this.#skipSpace() !== unit) throw this.#unexpected(what);
    if (++this.#depth > jsonDepthMax) throw new FieldProblem(`nested deeper than ${jsonDepthMax} levels`);
    this.#at++;
  }

  #close(): undefined {
    this.#at++;
    this.#depth--;
  }

  #readEscapedString(start: number, firstEscape: number): string {
    const text = this.#text;
    let value = "";
    let from = start;
    for (let at = firstEscape; at < text.length; at++) {
      const unit = text.charCodeAt(at);
      if (unit === 0x22) {
        value += text.slice(from, at);
        this.#at = at + 1;
        // RFC 8259 §8.2 leaves "\uD800" open; a protobuf string is UTF-8, which cannot hold it.
        if (!value.isWellFormed()) throw this.#problemAt(start, "a lone surrogate in a string");
        return value;
      }
      if (unit < 0x20) throw this.#problemAt(at, "a control character in a string");
      if (unit !== 0x5c) continue;
      value += text.slice(from, at) + this.#escapeAt(at + 1);
      at += text.charCodeAt(at + 1) === 0x75 ? 5 : 1;
      from = at + 1;
    }
    throw this.#problemAt(text.length, "the text ends inside a string");
  }

  #escapeAt(at: number): string {
    const name = this.#text.charAt(at);
    if (name === "u") {
      const digits = this.#text.slice(at + 1, at + 5);
      if (hexDigits.test(digits)) return String.fromCharCode(Number.parseInt(digits, 16));
    }
    const value = Object.hasOwn(escapes, name) ? escapes[name] : undefined;
    if (value === undefined) throw this.#problemAt(at, "an unknown escape in a string");
    return value;
  }

  // RFC 8259 §2: space, tab, line feed and carriage return. Returns the unit after them, NaN at the end.
  #skipSpace(): number {
    for (;;) {
      const unit = this.#text.charCodeAt(this.#at);
      if (unit !== 0x20 && unit !== 0x0a && unit !== 0x0d && unit !== 0x09) return unit;
      this.#at++;
    }
  }

  #unexpected(wanted: string): FieldProblem {
    if (this.#at >= this.#text.length) return new FieldProblem(`not JSON: the text ends where ${wanted} should be`);
    return this.#problemAt(this.#at, `${quote(this.#text.charAt(this.#at))} where ${wanted} should be`);
  }

  #problemAt(at: number, what: string): FieldProblem {
    return new FieldProblem(`not JSON: ${what}, at character ${at + 1}`);
  }
}
