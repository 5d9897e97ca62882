import { readBlockScalar } from "./yaml-block-scalar.ts";
import { nestingMax, readFlow } from "./yaml-flow.ts";
import { isPlainStart, plainValue, readPlainLine, readQuoted, requireTextKey } from "./yaml-scalars.ts";
import { YamlSource, type YamlValue } from "./yaml-source.ts";

/**
 * Reads the YAML of configuration files (YAML 1.2, core schema): maps and lists, in brackets too, texts plain, in quotes
 * and after `|` or `>`, comments. What else YAML has is refused: anchors, aliases, tags, directives, several documents,
 * keys that are no texts, texts in quotes over several lines, tabs between texts.
 *
 * @throws YamlProblem naming the line and column of what is refused
 */
export function readYaml(text: string): YamlValue {
  return new BlockReader(new YamlSource(text)).readDocument();
}

/** Reads what is laid out by indentation: YAML 1.2 §8. */
class BlockReader {
  readonly #source: YamlSource;

  constructor(source: YamlSource) {
    this.#source = source;
  }

  readDocument(): YamlValue {
    const source = this.#source;
    let indent = source.toContent();
    if (source.isMarker("---")) {
      source.skip(3);
      source.endLine();
      indent = source.toContent();
    }
    const value = indent < 0 ? null : this.#readNode(indent, -1, 0, true);
    if (source.toContent() >= 0) throw source.problem("this line belongs to nothing above it");
    if (source.isMarker("...")) {
      source.skip(3);
      source.endLine();
      if (source.toContent() >= 0) throw source.unexpected();
    }
    if (source.line < source.lines.length) throw source.problem("a second document");
    return value;
  }

  /**
   * Reads what begins here, and the rest of its last line.
   *
   * @param indent - the column of its lists and maps
   * @param parent - the column of what it belongs to
   * @param mayNest - whether lists and maps may begin here, as after a dash, but not after a key on its line
   */
  #readNode(indent: number, parent: number, depth: number, mayNest: boolean): YamlValue {
    const source = this.#source;
    if (depth > nestingMax) throw source.problem(`more than ${nestingMax} lists and maps are nested`);
    if (source.isDash && mayNest) return this.#readList(indent, depth);
    if (source.char === "|" || source.char === ">") return readBlockScalar(source, parent);
    if (source.char === "[" || source.char === "{") {
      const value = readFlow(source, parent, depth + 1);
      source.endLine();
      return value;
    }
    const { column } = source;
    const isQuoted = source.char === '"' || source.char === "'";
    const text = this.#readText();
    source.skipSpaces();
    if (source.isColon) {
      source.column = column;
      if (mayNest) return this.#readMap(indent, depth);
      throw source.problem("a second key on a line; a text with a colon and a space is written in quotes");
    }
    if (!isQuoted) return plainValue(this.#readFurtherLines(text, parent));
    source.endLine();
    return text;
  }

  /** Reads a text in quotes, or the first line of a plain one. */
  #readText(): string {
    const source = this.#source;
    const { char } = source;
    if (char === '"' || char === "'") return readQuoted(source);
    if (isPlainStart(source, false)) return readPlainLine(source, false);
    if (char === "*" || char === "&") throw source.problem(`${char}: a text that begins with it is written in quotes`);
    throw source.unexpected();
  }

  /** Reads the further lines of a plain text: YAML 1.2 §7.3.3. */
  #readFurtherLines(first: string, parent: number): string {
    const source = this.#source;
    let text = first;
    for (;;) {
      const hasComment = source.char !== "";
      source.endLine();
      const blankFrom = source.line;
      while (/^ *$/.test(source.lines[source.line] ?? "-")) source.line++;
      const isEnd = source.line >= source.lines.length || source.isMarker("---") || source.isMarker("...");
      if (isEnd || hasComment) return text;
      source.skipSpaces();
      if (source.column <= parent || source.isLineEnd) break;
      const blank = source.line - blankFrom;
      text += blank === 0 ? " " : "\n".repeat(blank);
      text += readPlainLine(source, false);
      if (source.isColon) throw source.problem("a key in a text that began on a line before");
    }
    source.column = 0;
    return text;
  }

  #readMap(indent: number, depth: number): YamlValue {
    const source = this.#source;
    const entries = new Map<string, YamlValue>();
    for (;;) {
      const key = this.#readKey();
      if (entries.has(key)) throw source.problem("this key is here twice", source.line, indent);
      source.skip(1);
      entries.set(key, this.#readValue(indent, depth, true));
      const next = source.toContent();
      if (next > indent) throw source.problem("this line belongs to nothing above it");
      if (next < indent) return Object.fromEntries(entries);
    }
  }

  #readKey(): string {
    const source = this.#source;
    if (source.isDash) throw source.unexpected();
    const { char } = source;
    const key = this.#readText();
    source.skipSpaces();
    if (!source.isColon) throw source.problem("a key without a colon and a space");
    requireTextKey(source, key, char);
    return key;
  }

  #readList(indent: number, depth: number): YamlValue {
    const source = this.#source;
    const items: YamlValue[] = [];
    do {
      source.skip(1);
      items.push(this.#readValue(indent, depth, false));
      const next = source.toContent();
      if (next > indent) throw source.problem("this line belongs to nothing above it");
      if (next < indent) break;
    } while (source.isDash);
    return items;
  }

  /** Reads what belongs to a key or a dash: on its line, on the lines below, or nothing. */
  #readValue(indent: number, depth: number, isOfKey: boolean): YamlValue {
    const source = this.#source;
    source.skipSpaces();
    if (!source.isLineEnd) return this.#readNode(source.column, indent, depth + 1, !isOfKey);
    source.endLine();
    const next = source.toContent();
    // The entries of a list that belongs to a key need not be indented further than the key.
    const isListOfKey = isOfKey && next === indent && source.isDash;
    return next > indent || isListOfKey ? this.#readNode(next, indent, depth + 1, true) : null;
  }
}
