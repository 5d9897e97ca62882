// A literal is made of the characters of RFC 3986 §3.3 that mean nothing to the template itself: unreserved,
// sub-delims but "*", "@", and percent escapes.
const literalToken = /(?:[A-Za-z0-9\-._~!$&'()+,;=@]|%[0-9A-Fa-f]{2})+/y;
const identToken = /[A-Za-z_][A-Za-z0-9_]*/y;

/** Walks the text of a path template token by token; what the tokens mean is the parser's business. */
export class PathTemplateScanner {
  readonly #text: string;
  #at = 0;

  constructor(text: string) {
    this.#text = text;
  }

  /** Whether the text is used up. */
  get done(): boolean {
    return this.#at === this.#text.length;
  }

  /** Steps over the given text if it comes next. */
  take(text: string): boolean {
    if (!this.#text.startsWith(text, this.#at)) return false;
    this.#at += text.length;
    return true;
  }

  /** Steps over the given text. Throws when something else comes next. */
  expect(text: string): void {
    if (!this.take(text)) throw this.problem(`wants "${text}"`);
  }

  /** Reads literal text as it is written, or `undefined` when none comes next. */
  takeLiteral(): string | undefined {
    return this.#takeToken(literalToken);
  }

  /** Reads an identifier of protobuf, or `undefined` when none comes next. */
  takeIdent(): string | undefined {
    return this.#takeToken(identToken);
  }

  /** An error that says where in the template it is. */
  problem(what: string): Error {
    return new Error(`path template "${this.#text}" ${what} at character ${this.#at + 1}`);
  }

  #takeToken(token: RegExp): string | undefined {
    token.lastIndex = this.#at;
    const text = token.exec(this.#text)?.[0];
    this.#at += text?.length ?? 0;
    return text;
  }
}
