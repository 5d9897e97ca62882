import { parseAst } from "rolldown/parseAst";
import { siblingMutations } from "./sibling-mutations.ts";
import { childrenOf, isNode, isType, type Node, nodesIn } from "../../protoport/testing/src/syntax.ts";

/**
 * A mistake that a programmer could make, such as a missing statement, half of a condition, `await` or member of a
 * literal. Other mistakes are a different name with the same type, two steps in the wrong order, and the opposite of a
 * condition or value.
 */
export type MutationKind = "statement" | "half" | "await" | "member" | "sibling" | "order" | "flip";

/** A small source change that a test should detect. */
export interface Mutation {
  readonly kind: MutationKind;
  readonly start: number;
  readonly end: number;
  /** The code that replaces the source between `start` and `end`. */
  readonly code: string;
}

const otherOperator = new Map(
  Object.entries({ "<": "<=", "<=": "<", ">": ">=", ">=": ">", "===": "!==", "!==": "===", "??=": "=" }),
);

const otherMethod = new Map(
  Object.entries({ min: "max", max: "min", some: "every", every: "some", shift: "pop", push: "unshift" }),
);

/** Changes to SQL statements that remain valid. */
const otherSql = { " AND ": " OR ", " IMMEDIATE": "", " FOR UPDATE": "", " DESC": "", " < ": " <= ", " > ": " >= " };

/** Methods that return their object or an equal promise, so that a call can be removed from a chain. */
const chained = new Set(["finally", "unref"]);

/** Returns a TypeScript source's mutations, in the order of their positions. */
export function mutationsOf(source: string): Mutation[] {
  const program: unknown = parseAst(source, { lang: "ts" });
  if (!isNode(program)) return [];
  const textOf = ({ start, end }: Pick<Node, "start" | "end">): string => source.slice(start, end);
  const visit = (node: Node, parent: Node | undefined, inTry: boolean, returned: boolean): Mutation[] => {
    if (isType(node) || node.type === "ImportDeclaration") return [];
    const childInTry = inTry && !/Function/.test(node.type);
    const { block, finalizer } = node;
    const inside = childrenOf(node).flatMap((child) =>
      visit(child, node, childInTry || child === block || isNode(finalizer), isReturned(child, node, returned)),
    );
    // Outside of `try`, returning a promise is equivalent to returning its awaited value.
    const isMutated = inTry || !returned || node.type !== "AwaitExpression";
    return isMutated ? [...mutationsAt(node, parent, textOf), ...inside] : inside;
  };
  const mutations = [...visit(program, undefined, false, false), ...siblingMutations(program, source)];
  return mutations.toSorted((a, b) => a.start - b.start || a.end - b.end);
}

/** Returns whether a function returns a node's value. */
function isReturned(node: Node, parent: Node, parentIsReturned: boolean): boolean {
  if (parent.type === "ConditionalExpression") return parentIsReturned && node !== parent["test"];
  return parent.type === "ReturnStatement" || parent.type === "ArrowFunctionExpression";
}

type TextOf = (part: Pick<Node, "start" | "end">) => string;

/** Yields the mutations that replace a node, or swap two consecutive steps in it. */
function* mutationsAt(node: Node, parent: Node | undefined, textOf: TextOf): Generator<Mutation> {
  const { test, operator, argument, left, right, property, callee } = node;
  const replaced = (kind: MutationKind, code = ";", part?: Node): Mutation => {
    const { start, end } = part ?? node;
    return { kind, start, end, code };
  };
  yield* swappedSteps(nodesIn(node["body"]), textOf);
  switch (node.type) {
    case "IfStatement":
    case "ConditionalExpression":
      if (isNode(test)) yield* ["true", "false"].map((code) => replaced("flip", code, test));
      break;
    case "LogicalExpression":
      if (isNode(left) && operator !== "??") yield replaced("half", textOf(left));
      if (isNode(right)) yield replaced("half", `(${textOf(right)})`);
      break;
    case "BinaryExpression":
    case "AssignmentExpression": {
      const other = otherOperator.get(String(operator));
      if (other !== undefined && isNode(left) && isNode(right))
        yield replaced("flip", `${textOf(left)} ${other} ${textOf(right)}`);
      break;
    }
    case "UnaryExpression":
      if (operator === "!" && isNode(argument) && node !== parent?.["test"]) yield replaced("flip", textOf(argument));
      break;
    case "AwaitExpression":
      // The linter rejects a statement that ignores a promise.
      if (isNode(argument))
        yield replaced("await", `${parent?.type === "ExpressionStatement" ? "void " : ""}${textOf(argument)}`);
      break;
    case "ReturnStatement":
    case "ThrowStatement":
    case "ContinueStatement":
      if (node.type !== "ReturnStatement" || !isNode(argument)) yield replaced("statement");
      break;
    case "ExpressionStatement":
      if (!/^super\(|^"use /.test(textOf(node))) yield replaced("statement");
      break;
    case "VariableDeclaration":
      if (String(node["kind"]).endsWith("using"))
        yield replaced("statement", textOf(node).replace(/^(await )?using/, "const"));
      break;
    case "Property":
      if (parent?.type === "ObjectExpression") yield replaced("member", "...{}");
      break;
    case "CallExpression":
      if (isNode(callee) && isNode(callee["object"]) && chained.has(textOf(callee).replace(/^.*\W/s, "")))
        yield replaced("statement", textOf(callee["object"]));
      break;
    case "MemberExpression": {
      const other = isNode(property) ? otherMethod.get(textOf(property)) : undefined;
      if (isNode(property) && other !== undefined && parent?.type === "CallExpression")
        yield replaced("flip", other, property);
      break;
    }
    case "TemplateElement":
    case "Literal":
      yield* otherLiterals(node, textOf(node)).map((code) => replaced("flip", code));
      break;
  }
}

/**
 * Yields pairs of steps in reverse order, if the order may matter. The order may matter if a step waits, returns or
 * throws, or if both steps use the same object.
 */
function* swappedSteps(steps: readonly Node[], textOf: TextOf): Generator<Mutation> {
  for (const [at, step] of steps.entries()) {
    const next = steps[at + 1];
    // Consecutive `if` statements mostly exclude each other.
    if (next === undefined || !isStep(step) || !isStep(next) || step.type + next.type === "IfStatementIfStatement")
      continue;
    const [one, other] = [textOf(step), textOf(next)];
    const mayMatter =
      [step, next].flatMap(partsOf).some(({ type }) => /^(Await|Return|Throw)/.test(type)) ||
      callsIn(step, textOf).some((a) => callsIn(next, textOf).some((b) => a.object === b.object && !canSwap(a, b)));
    if (one !== other && mayMatter) yield { kind: "order", start: step.start, end: next.end, code: `${other}\n${one}` };
  }
}

/** Returns a node and its descendants, without the nodes in nested functions, which do not run with the node. */
function partsOf(node: Node): Node[] {
  if (/Function/.test(node.type)) return [];
  return [node, ...childrenOf(node).flatMap(partsOf)];
}

/** A method call. The call `this.#socket.end()` has the object `this.#socket` and the method `end`. */
type MethodCall = Readonly<Record<"object" | "method" | "argument", string>>;

function callsIn(step: Node, textOf: TextOf): MethodCall[] {
  return partsOf(step).flatMap(({ callee, end }) => {
    if (!isNode(callee) || !isNode(callee["object"]) || !isNode(callee["property"])) return [];
    const [argument = ""] = textOf({ start: callee.end, end }).split(",");
    return [{ object: textOf(callee["object"]), method: textOf(callee["property"]), argument }];
  });
}

/**
 * Returns whether two calls to an object may be swapped. The calls may only read the object, set different properties,
 * or register different events or metrics, or the object may be a namespace.
 */
function canSwap(a: MethodCall, b: MethodCall): boolean {
  const both = (pattern: RegExp): boolean => pattern.test(a.method) && pattern.test(b.method);
  const isNamespace = /^(Object|Math|Number|Buffer|performance)$/.test(a.object);
  const registerOthers = both(/^(on(ce|[A-Z]\w*)?|gauge|observedCounter)$/) && a.argument !== b.argument;
  const setOthers = both(/^(add|set|update)[A-Z]/) && (a.method !== b.method || a.argument !== b.argument);
  return isNamespace || registerOthers || setOthers || both(/^(get|has|read|to)[A-Z]/);
}

function isStep({ type, alternate }: Node): boolean {
  return type === "ExpressionStatement" || (type === "IfStatement" && !isNode(alternate));
}

function otherLiterals(node: Node, text: string): string[] {
  switch (typeof node["value"]) {
    case "boolean":
      return [text === "true" ? "false" : "true"];
    case "bigint":
      return [`${node["value"] + 1n}n`];
    // Large numbers are doubled, because no test distinguishes 250 ms from 251 ms.
    case "number":
      return [String(node["value"] >= 100 ? node["value"] * 2 : node["value"] + 1)];
    default:
      return node["regex"] === undefined ? otherStatements(text) : otherPatterns(text);
  }
}

function otherPatterns(text: string): string[] {
  return [text.replace(/^\/\^/, "/"), text.replace(/\$(\/\w*)$/, "$1")].filter(
    (other) => other !== text && !other.startsWith("//"),
  );
}

function otherStatements(text: string): string[] {
  if (!/\b(SELECT|INSERT|DELETE|UPDATE|BEGIN|CREATE|PRAGMA|COPY|WHERE)\b/.test(text)) return [];
  return Object.entries(otherSql).flatMap(([from, to]) => {
    const parts = text.split(from);
    return parts.slice(1).map((_, at) => parts.slice(0, at + 1).join(from) + to + parts.slice(at + 1).join(from));
  });
}
