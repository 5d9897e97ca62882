import { createRequire } from "node:module";
import { toShortLine } from "@protoport/gateway/errors";
import type { CST, Node as YamlNode } from "yaml";

/** Maximum nesting of sequences and mappings, as in JSON messages. The stack allows far more levels. */
const maxNesting = 100;

/** A YAML value with its position. */
export interface YamlValue {
  /** The value's first line and column, counted from 1. */
  readonly line: number;
  readonly column: number;
  /** A scalar, a sequence's items, or a mapping's members. */
  readonly value: string | number | bigint | boolean | null | readonly YamlValue[] | ReadonlyMap<string, YamlMember>;
}

/** A mapping's member, with its value and its key's position. */
interface YamlMember extends YamlValue {
  readonly keyLine: number;
  readonly keyColumn: number;
}

/** The error that {@link readYaml} throws for text that is not valid. */
export class YamlProblem extends Error {
  readonly line: number;
  readonly column: number;
  /** The message without the position. */
  readonly reason: string;

  constructor(line: number, column: number, reason: string) {
    super(`line ${line}, column ${column}: ${reason}`);
    this.line = line;
    this.column = column;
    this.reason = reason;
  }
}

/**
 * Parses YAML 1.2 with the core schema to a JSON value, in time proportional to the text's length. Rejects duplicate
 * keys, aliases, tags outside the core schema, and a second document, because they are ambiguous. Keys must be strings.
 * `<<` is an ordinary key. Nesting is limited to {@link maxNesting} levels.
 *
 * @throws YamlProblem with the problem's line and column, both from 1
 */
export function readYaml(text: string): unknown {
  return parseYaml(text).document.toJS();
}

/** Parses YAML as {@link readYaml} does, with each value's position. An empty text has the value `null`. */
export function readLocatedYaml(text: string): YamlValue {
  const { document, positionOf } = parseYaml(text);
  const { isMap, isScalar, isSeq } = loadYaml();
  const locate = (node: unknown): YamlValue => {
    const position = positionOf(node);
    if (isMap(node)) {
      const members = node.items.map(({ key, value }): [string, YamlMember] => {
        const { line: keyLine, column: keyColumn } = positionOf(key);
        // A missing value has no node, and gets the key's position.
        const locatedValue = value === null ? { ...positionOf(key), value: null } : locate(value);
        return [isScalar(key) ? String(key.value) : "", { ...locatedValue, keyLine, keyColumn }];
      });
      return { ...position, value: new Map(members) };
    }
    if (isSeq(node)) return { ...position, value: node.items.map(locate) };
    return { ...position, value: isScalar(node) ? toScalar(node.value) : null };
  };
  return locate(document.contents);
}

function toScalar(value: unknown): string | number | bigint | boolean | null {
  const isText = typeof value === "string";
  const isOther = typeof value === "number" || typeof value === "boolean" || typeof value === "bigint";
  return isText || isOther ? value : null;
}

type ProblemAt = (offset: number, message: string) => YamlProblem;

function parseYaml(text: string) {
  const { Composer, LineCounter, Parser, visit, isNode, isScalar } = loadYaml();
  const lineCounter = new LineCounter();
  const positionAt = (offset: number): { readonly line: number; readonly column: number } => {
    const { line, col } = lineCounter.linePos(offset);
    return { line: Math.max(line, 1), column: Math.max(col, 1) };
  };
  const problemAt: ProblemAt = (offset, message) => {
    const { line, column } = positionAt(offset);
    return new YamlProblem(line, column, message);
  };
  const tokens = [...new Parser(lineCounter.addNewLine).parse(text)];
  requireShallow(tokens, problemAt);
  // `uniqueKeys` is off, because comparing each key with all others takes quadratic time.
  const options = {
    schema: "core",
    merge: false,
    resolveKnownTags: false,
    stringKeys: true,
    uniqueKeys: false,
  } as const;
  const [document, second] = new Composer(options).compose(tokens, true, text.length);
  if (document === undefined) throw problemAt(0, "the text is not a document");
  const [problem] = [...document.errors, ...document.warnings];
  if (problem !== undefined) throw problemAt(problem.pos[0], toShortLine(problem.message));
  if (second !== undefined) throw problemAt(second.range[0], "the file must contain a single document");
  const startOf = (node: unknown): number | undefined =>
    isNode(node) ? (node satisfies YamlNode).range?.[0] : undefined;
  visit(document, {
    Alias(_, { range, source }) {
      throw problemAt(
        range?.[0] ?? 0,
        `*${toShortLine(source)} is an alias, which is not supported; repeat the value or quote the string`,
      );
    },
    Map(_, { items }) {
      const names = new Set<string>();
      for (const { key } of items) {
        const name = isScalar(key) ? String(key.value) : "";
        if (names.has(name))
          throw problemAt(
            startOf(key) ?? 0,
            `mapping keys must be unique, got ${JSON.stringify(toShortLine(name))} again`,
          );
        names.add(name);
      }
    },
  });
  const positionOf = (node: unknown) => positionAt(startOf(node) ?? 0);
  return { document, positionOf };
}

/** Checks the nesting before nodes are composed, because the composer is recursive. @throws YamlProblem */
function requireShallow(tokens: readonly CST.Token[], problemAt: ProblemAt): void {
  let level = tokens.flatMap(collectionsIn);
  for (let depth = 1; level.length > 0; depth++) {
    const [first] = level;
    if (first !== undefined && depth > maxNesting)
      throw problemAt(first.offset, `sequences and mappings must be nested at most ${maxNesting} levels deep`);
    level = level.flatMap(({ items }) => items.flatMap(({ key, value }) => [key, value].flatMap(collectionsIn)));
  }
}

type Collection = CST.BlockMap | CST.BlockSequence | CST.FlowCollection;

/** Returns the collection that a token is or, for a document, contains. Returns no collection for scalars. */
function collectionsIn(token: CST.Token | null | undefined): readonly Collection[] {
  if (token?.type === "document") return collectionsIn(token.value);
  return token && "items" in token ? [token] : [];
}

// The package `yaml` is loaded on first use, because its 73 modules take 25 ms to load.
function loadYaml(): typeof import("yaml") {
  // `__filename` is for CommonJS bundles, where import.meta.url is undefined.
  const require = createRequire(import.meta.url ?? __filename);
  const yaml: typeof import("yaml") = require("yaml");
  return yaml;
}
