import { childrenOf, isNode, type Node, nodesIn } from "../../protoport/testing/src/syntax.ts";

/** A test name, as a failure shows it. */
export interface TestName {
  /** The titles of the groups around the test and its own title, separated by " > ". */
  readonly text: string;
  /** The position of the title, or of a row value that appears in the title. */
  readonly start: number;
  /** Whether the text is only a row's value. The test title is then in another file. */
  readonly isRow: boolean;
}

/** Titles that contain row values. */
const placeholder = /\$([a-z]\w*)|%[sdijo]/gi;

/**
 * Returns the names of a source's tests. A test with a table in the same file has one name for each row, with the row's
 * strings and numbers in place of `$name` or `%s`.
 *
 * @param stringOf - returns the string of a literal or template, or `undefined` for other nodes
 */
export function testNamesOf(program: Node, source: string, stringOf: (node: Node) => string | undefined): TestName[] {
  const tables = new Map<string, Node>();
  const names: TestName[] = [];
  const used = new Set<Node>();
  /** The names of rows whose test is in another file. */
  const others: (readonly [Node, TestName])[] = [];
  const constants = (node: Node): void => {
    const { id, init } = node;
    if (node.type === "VariableDeclarator" && isNode(id) && isNode(init)) tables.set(String(id["name"]), init);
    for (const child of childrenOf(node)) constants(child);
  };
  const rowsOf = (table: unknown): Node[] => {
    if (!isNode(table)) return [];
    if (table.type === "Identifier") return rowsOf(tables.get(String(table["name"])));
    if (table.type.startsWith("TS")) return rowsOf(table["expression"]);
    return table.type === "ArrayExpression" ? nodesIn(table["elements"]) : [];
  };
  const addRow = (groups: string, title: string, row: Node): void => {
    const { byName, byPlace } = valuesOf(row);
    let place = 0;
    let longest = { text: "", start: row.start };
    const expanded = title.replaceAll(placeholder, (mark: string, name: string | undefined) => {
      const value = name === undefined ? byPlace[place++] : byName.get(name);
      const text = value && shownValue(value);
      if (value === undefined || text === undefined) return mark;
      used.add(value);
      if (text.length > longest.text.length) longest = { text, start: value.start };
      return text;
    });
    names.push({ text: groups + expanded, start: longest.start, isRow: false });
  };
  const shownValue = (value: Node): string | undefined =>
    value.type === "Literal" && typeof value["value"] === "number" ? String(value["value"]) : stringOf(value);
  const visit = (node: Node, groups: string): void => {
    let inner = groups;
    const call = callOf(node, source, stringOf);
    if (call !== undefined) {
      const rows = rowsOf(call.table).filter((row) => row.type !== "SpreadElement");
      if (call.isGroup) inner = `${groups}${call.title} > `;
      else if (rows.length === 0) names.push({ text: groups + call.title, start: call.start, isRow: false });
      else for (const row of rows) addRow(groups, call.title, row);
    }
    const { key, value } = node;
    if (node.type === "Property" && isNode(key) && key["name"] === "name" && isNode(value) && !used.has(value)) {
      const text = stringOf(value);
      if (text !== undefined) others.push([value, { text, start: value.start, isRow: true }]);
    }
    for (const child of childrenOf(node)) visit(child, inner);
  };
  constants(program);
  visit(program, "");
  names.push(...others.flatMap(([value, name]) => (used.has(value) ? [] : [name])));
  return names.filter(({ start }, index) => index === names.findIndex((name) => name.start === start));
}

/** Returns the titles of a source's tests, without their groups' titles and with `$name` or `%s` as written. */
export function testTitlesOf(program: Node, source: string, stringOf: (node: Node) => string | undefined): TestName[] {
  const call = callOf(program, source, stringOf);
  const own = call === undefined || call.isGroup ? [] : [{ text: call.title, start: call.start, isRow: false }];
  return [...own, ...childrenOf(program).flatMap((child) => testTitlesOf(child, source, stringOf))];
}

/**
 * Returns the values in a table row. An object's values are by name, and the values of an array or a single value are
 * by index.
 */
function valuesOf(row: Node): { readonly byName: ReadonlyMap<string, Node>; readonly byPlace: readonly Node[] } {
  const byName = nodesIn(row["properties"]).flatMap(({ key, value }): [string, Node][] =>
    isNode(key) && isNode(value) ? [[String(key["name"]), value]] : [],
  );
  return { byName: new Map(byName), byPlace: row.type === "ArrayExpression" ? nodesIn(row["elements"]) : [row] };
}

interface TestCall {
  readonly title: string;
  readonly start: number;
  readonly isGroup: boolean;
  /** The argument `table` in `test.each(table)`. */
  readonly table: unknown;
}

function callOf(node: Node, source: string, stringOf: (node: Node) => string | undefined): TestCall | undefined {
  const { callee } = node;
  if (node.type !== "CallExpression" || !isNode(callee)) return undefined;
  const called = source.slice(callee.start, callee.end);
  const [first, second] = nodesIn(node["arguments"]);
  if (!/^(?:test|it|describe|suite)\b/.test(called) || first === undefined || second === undefined) return undefined;
  const title = stringOf(first);
  if (title === undefined) return undefined;
  const each = callee.type === "CallExpression" && isNode(callee["callee"]) ? callee["callee"] : undefined;
  const isTable = each !== undefined && /\.(?:each|for)$/.test(source.slice(each.start, each.end));
  return {
    title,
    start: first.start,
    isGroup: /^(?:describe|suite)/.test(called),
    table: isTable ? nodesIn(callee["arguments"])[0] : undefined,
  };
}
