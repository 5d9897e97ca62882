/** What a YAML text says: that of JSON. */
export type YamlValue =
  | string
  | number
  | boolean
  | null
  | readonly YamlValue[]
  | { readonly [name: string]: YamlValue };

/** Why a text cannot be read; the message begins with the line and the column, both from 1. */
class YamlProblem extends Error {}

/** A YAML text, and a place in it. */
export class YamlSource {
  readonly lines: readonly string[];
  /** From 0, as the column. */
  line = 0;
  column = 0;

  /** @throws YamlProblem for control characters, and for line ends that are neither LF nor CRLF */
  constructor(text: string) {
    this.lines = text.replace(/^\uFEFF/, "").split(/\r?\n/);
    for (const [line, each] of this.lines.entries()) {
      // eslint-disable-next-line no-control-regex
      const column = each.search(/[\x00-\x08\x0b-\x1f\x7f]/);
      if (column >= 0) throw this.problem("a control character", line, column);
    }
  }

  /** The character here; empty at the end of the line. */
  get char(): string {
    return this.charAfter(0);
  }

  /** Whether nothing but a comment is left of the line. */
  get isLineEnd(): boolean {
    return this.char === "" || (this.char === "#" && (this.column === 0 || this.charAfter(-1) === " "));
  }

  /** Whether an entry of a list begins here. */
  get isDash(): boolean {
    return this.char === "-" && isGap(this.charAfter(1));
  }

  /** Whether a key ends here. */
  get isColon(): boolean {
    return this.char === ":" && isGap(this.charAfter(1));
  }

  charAfter(distance: number): string {
    return this.lines[this.line]?.[this.column + distance] ?? "";
  }

  /** Whether a marker of documents is the line's first word. */
  isMarker(marker: string, line: number = this.line): boolean {
    const text = this.lines[line] ?? "";
    return text.startsWith(marker) && /^[ \t]?$/.test(text[marker.length] ?? "");
  }

  skip(characters: number): void {
    this.column += characters;
  }

  skipSpaces(): void {
    while (this.char === " ") this.column++;
  }

  /** Goes to the next line. Nothing but a comment may be left of this one. */
  endLine(): void {
    this.skipSpaces();
    if (!this.isLineEnd) throw this.unexpected();
    this.line++;
    this.column = 0;
  }

  /** Goes on to what is not blank. Returns its column, or -1 if the document ends first. */
  toContent(): number {
    for (; this.line < this.lines.length; this.endLine()) {
      if (this.column === 0 && (this.isMarker("---") || this.isMarker("..."))) return -1;
      this.skipSpaces();
      if (!this.isLineEnd) return this.column;
    }
    return -1;
  }

  /** Returns the problem of what is here and has no place. */
  unexpected(): YamlProblem {
    if (this.char === "") return this.problem("something is missing");
    if (this.char === "\t") return this.problem("a tab, where YAML wants spaces");
    return this.problem(`${this.char} has no place here`);
  }

  problem(says: string, line: number = this.line, column: number = this.column): YamlProblem {
    return new YamlProblem(`line ${line + 1}, column ${column + 1}: ${says}`);
  }
}

function isGap(char: string): boolean {
  return char === "" || char === " ";
}
