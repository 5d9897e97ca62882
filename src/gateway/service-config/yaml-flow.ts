import { isPlainStart, plainValue, readPlainLine, readQuoted, requireTextKey } from "./yaml-scalars.ts";
import type { YamlSource, YamlValue } from "./yaml-source.ts";

/** How deep lists and maps may be nested. 100: a rule has four, and the stack holds far more. */
export const nestingMax = 100;

/**
 * Reads a list or a map in brackets, on one line or several: YAML 1.2 §7.4.
 *
 * @param parent - the column of what it belongs to; its lines are indented further
 */
export function readFlow(source: YamlSource, parent: number, depth: number): YamlValue {
  if (depth > nestingMax) throw source.problem(`more than ${nestingMax} lists and maps are nested`);
  const isMap = source.char === "{";
  const begin = { line: source.line, column: source.column };
  const list: YamlValue[] = [];
  const entries = new Map<string, YamlValue>();
  const toToken = (): string => {
    source.skipSpaces();
    while (source.isLineEnd) {
      source.endLine();
      if (source.toContent() <= parent) throw source.problem("the bracket is not closed", begin.line, begin.column);
    }
    return source.char;
  };
  for (;;) {
    source.skip(1);
    if (toToken() === (isMap ? "}" : "]")) break;
    if (isMap) {
      const key = readFlowKey(source, entries);
      toToken();
      entries.set(key, readFlowValue(source, parent, depth));
    } else {
      list.push(readFlowValue(source, parent, depth));
    }
    if (toToken() === (isMap ? "}" : "]")) break;
    if (source.char !== ",") throw source.unexpected();
  }
  source.skip(1);
  return isMap ? Object.fromEntries(entries) : list;
}

function readFlowKey(source: YamlSource, known: ReadonlyMap<string, unknown>): string {
  const { line, column } = source;
  const isQuoted = source.char === '"' || source.char === "'";
  if (!isQuoted && !isPlainStart(source, true)) throw source.unexpected();
  const key = isQuoted ? readQuoted(source) : readPlainLine(source, true);
  source.skipSpaces();
  if (source.char !== ":") throw source.problem("a key without a value");
  requireTextKey(source, key, isQuoted ? '"' : "");
  if (known.has(key)) throw source.problem("this key is here twice", line, column);
  source.skip(1);
  return key;
}

function readFlowValue(source: YamlSource, parent: number, depth: number): YamlValue {
  const { char } = source;
  if (char === "[" || char === "{") return readFlow(source, parent, depth + 1);
  if (char === '"' || char === "'") return readQuoted(source);
  if (!isPlainStart(source, true)) throw source.unexpected();
  return plainValue(readPlainLine(source, true));
}
