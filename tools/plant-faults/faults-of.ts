import { parseAst } from "rolldown/parseAst";
import { isNode, isType, type Node } from "./syntax.ts";

/** One small change of a source file that some test should notice. */
export interface Fault {
  readonly start: number;
  readonly end: number;
  /** The code that replaces what is between `start` and `end`. */
  readonly code: string;
}

/** The operator that a tired engineer writes in place of another. */
const otherOperator: ReadonlyMap<string, string> = new Map([
  ["<", "<="],
  ["<=", "<"],
  [">", ">="],
  [">=", ">"],
  ["===", "!=="],
  ["!==", "==="],
  ["&&", "||"],
  ["||", "&&"],
  ["+", "-"],
  ["-", "+"],
  ["*", "/"],
  ["/", "*"],
  ["%", "*"],
  ["&", "|"],
  ["|", "&"],
  ["<<", ">>"],
  [">>", "<<"],
  [">>>", "<<"],
  ["++", "--"],
  ["--", "++"],
  ["+=", "-="],
  ["-=", "+="],
  ["??=", "="],
]);

const otherMethod: ReadonlyMap<string, string> = new Map([
  ["min", "max"],
  ["max", "min"],
  ["some", "every"],
  ["every", "some"],
  ["shift", "pop"],
  ["pop", "shift"],
  ["push", "unshift"],
  ["unshift", "push"],
  ["startsWith", "endsWith"],
  ["endsWith", "startsWith"],
  ["indexOf", "lastIndexOf"],
  ["lastIndexOf", "indexOf"],
]);

/** Methods whose string arguments decide something; other strings are only read by people. */
const deciding = new Set([
  "has",
  "get",
  "set",
  "delete",
  "includes",
  "append",
  "on",
  "once",
  "emit",
  ...otherMethod.keys(),
]);

/** Mistakes in SQL that cause no error. */
const sqlFaults: readonly (readonly [RegExp, string])[] = [
  [/ AND /g, " OR "],
  [/ IMMEDIATE/g, ""],
  [/ FOR UPDATE/g, ""],
  [/ DESC\b/g, ""],
  [/ < /g, " <= "],
  [/ > /g, " >= "],
  [/ <= /g, " < "],
  [/ >= /g, " > "],
];

/** Returns every fault that can be planted in a TypeScript source, in its order. */
export function faultsOf(source: string): Fault[] {
  const faults: Fault[] = [];
  const textOf = (node: Node): string => source.slice(node.start, node.end);
  const replace = ({ start, end }: Node, code: string): unknown => faults.push({ start, end, code });
  const visit = (node: Node, parent: Node | undefined, tried: boolean, returned: boolean): void => {
    if (isType(node) || node.type === "ImportDeclaration") return;
    // Outside of `try` it makes no difference whether a promise is awaited before it is returned.
    if (tried || !returned || node.type !== "AwaitExpression") plant(node, parent, textOf, replace);
    const triedInside = node.type === "TryStatement" || (tried && !/Function/.test(node.type));
    for (const child of Object.values(node).flat().filter(isNode))
      visit(child, node, triedInside, isReturned(child, node, returned));
  };
  const program: unknown = parseAst(source, { lang: "ts" });
  if (isNode(program)) visit(program, undefined, false, false);
  return faults.toSorted((a, b) => a.start - b.start || a.end - b.end);
}

/** Returns whether a function returns the value of a node. */
function isReturned(node: Node, parent: Node, parentIsReturned: boolean): boolean {
  if (parent.type === "ConditionalExpression") return parentIsReturned && node !== parent["test"];
  return parent.type === "ReturnStatement" || parent.type === "ArrowFunctionExpression";
}

type Plant = (
  node: Node,
  parent: Node | undefined,
  textOf: (node: Node) => string,
  replace: (node: Node, code: string) => unknown,
) => void;

const plant: Plant = (node, parent, textOf, replace) => {
  const { test, operator, argument, left, right, property } = node;
  switch (node.type) {
    case "IfStatement":
    case "ConditionalExpression":
      if (isNode(test)) for (const forced of ["true", "false"]) replace(test, forced);
      break;
    // True would be a loop without end, which costs minutes and shows little.
    case "WhileStatement":
    case "ForStatement":
      if (isNode(test)) replace(test, "false");
      break;
    case "BinaryExpression":
    case "LogicalExpression":
      if (!isNode(left) || !isNode(right)) break;
      if (operator === "??") replace(node, `(${textOf(right)})`);
      else if (!(operator === "+" && [left, right].some(isText))) {
        const other = otherOperator.get(String(operator));
        if (other !== undefined) replace(node, `${textOf(left)} ${other} ${textOf(right)}`);
      }
      break;
    case "AssignmentExpression":
    case "UpdateExpression":
      if (parent?.type !== "ForStatement") {
        const other = otherOperator.get(String(operator));
        if (other !== undefined) replace(node, textOf(node).replace(String(operator), other));
      }
      break;
    case "UnaryExpression":
      if ((operator === "!" || operator === "-") && isNode(argument) && node !== parent?.["test"])
        replace(node, textOf(argument));
      break;
    case "AwaitExpression":
      if (isNode(argument)) replace(node, textOf(argument));
      break;
    case "ReturnStatement":
      if (!isNode(argument)) replace(node, ";");
      else if (textOf(argument) !== "undefined") replace(node, "return undefined as never;");
      break;
    case "ThrowStatement":
    case "ContinueStatement":
      replace(node, ";");
      break;
    case "ExpressionStatement":
      if (!/^super\(|^"use /.test(textOf(node))) replace(node, ";");
      break;
    case "Property":
      if (parent?.type === "ObjectExpression") replace(node, "...{}");
      break;
    case "ArrayExpression":
      if (Array.isArray(node["elements"]) && node["elements"].length > 0) replace(node, "[]");
      break;
    case "MemberExpression": {
      const other =
        isNode(property) && parent?.type === "CallExpression" ? otherMethod.get(textOf(property)) : undefined;
      if (isNode(property) && other !== undefined) replace(property, other);
      break;
    }
    case "TemplateElement":
      for (const code of otherSql(textOf(node))) replace(node, code);
      break;
    case "Literal":
      for (const code of otherLiterals(node, parent, textOf)) replace(node, code);
      break;
  }
};

function isText({ type, value }: Node): boolean {
  return type === "TemplateLiteral" || typeof value === "string";
}

function otherLiterals(node: Node, parent: Node | undefined, textOf: (node: Node) => string): string[] {
  const text = textOf(node);
  switch (typeof node["value"]) {
    case "boolean":
      return [text === "true" ? "false" : "true"];
    case "bigint":
      return [`${node["value"] + 1n}n`];
    // Large numbers are doubled: a time of 5 s that is off by a millisecond is the same time.
    case "number":
      return [String(node["value"] >= 1000 ? node["value"] * 2 : node["value"] + 1)];
    case "string":
      return decides(node, parent, textOf) ? [JSON.stringify(`${node["value"]}~`)] : otherSql(text);
    default:
      return node["regex"] === undefined ? [] : otherPatterns(text);
  }
}

function decides(node: Node, parent: Node | undefined, textOf: (node: Node) => string): boolean {
  if (parent?.type === "CallExpression" && isNode(parent["callee"]))
    return deciding.has(textOf(parent["callee"]).replace(/^.*\./s, ""));
  return (
    (parent?.type === "BinaryExpression" && parent["operator"] !== "in") ||
    (parent?.type === "SwitchCase" && node === parent["test"])
  );
}

function otherPatterns(text: string): string[] {
  const start = text.replace(/^\/\^/, "/");
  const end = text.replace(/\$(\/\w*)$/, "$1");
  return [start, end].filter((other) => other !== text && !other.startsWith("//"));
}

function otherSql(text: string): string[] {
  if (!/\b(SELECT|INSERT|DELETE|UPDATE|BEGIN|CREATE|PRAGMA|COPY|WHERE)\b/.test(text)) return [];
  return sqlFaults.flatMap(([pattern, other]) =>
    [...text.matchAll(pattern)].map(
      ({ index, 0: found }) => text.slice(0, index) + other + text.slice(index + found.length),
    ),
  );
}
