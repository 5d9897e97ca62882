import { parseAst } from "rolldown/parseAst";
import { siblingFaults } from "./sibling-faults.ts";
import { childrenOf, isNode, isType, type Node, nodesIn } from "./syntax.ts";

/**
 * What a hasty change does: it loses a statement, one half of a condition, an `await` or a member of a literal, takes
 * another name of the same type, has two steps in the wrong order, or says the opposite.
 */
export type FaultKind = "statement" | "half" | "await" | "member" | "sibling" | "order" | "flip";

/** One small change of a source file that some test should notice. */
export interface Fault {
  readonly kind: FaultKind;
  readonly start: number;
  readonly end: number;
  /** The code that replaces what is between `start` and `end`. */
  readonly code: string;
}

const otherOperator = new Map(
  Object.entries({ "<": "<=", "<=": "<", ">": ">=", ">=": ">", "===": "!==", "!==": "===", "??=": "=" }),
);

const otherMethod = new Map(
  Object.entries({ min: "max", max: "min", some: "every", every: "some", shift: "pop", push: "unshift" }),
);

/** Mistakes in SQL that cause no error. */
const otherSql = { " AND ": " OR ", " IMMEDIATE": "", " FOR UPDATE": "", " DESC": "", " < ": " <= ", " > ": " >= " };

/** Methods that are called for what they leave behind, and can be left out of a chain. */
const chained = new Set(["finally", "unref"]);

/** Returns every fault that can be planted in a TypeScript source, in its order. */
export function faultsOf(source: string): Fault[] {
  const program: unknown = parseAst(source, { lang: "ts" });
  if (!isNode(program)) return [];
  const textOf = ({ start, end }: Pick<Node, "start" | "end">): string => source.slice(start, end);
  const visit = (node: Node, parent: Node | undefined, tried: boolean, returned: boolean): Fault[] => {
    if (isType(node) || node.type === "ImportDeclaration") return [];
    const triedInside = tried && !/Function/.test(node.type);
    const { block, finalizer } = node;
    const inside = childrenOf(node).flatMap((child) =>
      visit(child, node, triedInside || child === block || isNode(finalizer), isReturned(child, node, returned)),
    );
    // Outside of `try` it makes no difference whether a promise is awaited before it is returned.
    const isPlanted = tried || !returned || node.type !== "AwaitExpression";
    return isPlanted ? [...faultsAt(node, parent, textOf), ...inside] : inside;
  };
  const faults = [...visit(program, undefined, false, false), ...siblingFaults(program, source)];
  return faults.toSorted((a, b) => a.start - b.start || a.end - b.end);
}

/** Returns whether a function returns the value of a node. */
function isReturned(node: Node, parent: Node, parentIsReturned: boolean): boolean {
  if (parent.type === "ConditionalExpression") return parentIsReturned && node !== parent["test"];
  return parent.type === "ReturnStatement" || parent.type === "ArrowFunctionExpression";
}

type TextOf = (part: Pick<Node, "start" | "end">) => string;

/** Yields the faults that replace a node, or two that follow each other in it. */
function* faultsAt(node: Node, parent: Node | undefined, textOf: TextOf): Generator<Fault> {
  const { test, operator, argument, left, right, property, callee } = node;
  const lost = (kind: FaultKind, code = ";", part?: Node): Fault => {
    const { start, end } = part ?? node;
    return { kind, start, end, code };
  };
  yield* swappedSteps(nodesIn(node["body"]), textOf);
  switch (node.type) {
    case "IfStatement":
    case "ConditionalExpression":
      if (isNode(test)) yield* ["true", "false"].map((code) => lost("flip", code, test));
      break;
    case "LogicalExpression":
      if (isNode(left) && operator !== "??") yield lost("half", textOf(left));
      if (isNode(right)) yield lost("half", `(${textOf(right)})`);
      break;
    case "BinaryExpression":
    case "AssignmentExpression": {
      const other = otherOperator.get(String(operator));
      if (other !== undefined && isNode(left) && isNode(right))
        yield lost("flip", `${textOf(left)} ${other} ${textOf(right)}`);
      break;
    }
    case "UnaryExpression":
      if (operator === "!" && isNode(argument) && node !== parent?.["test"]) yield lost("flip", textOf(argument));
      break;
    case "AwaitExpression":
      // A promise that nobody looks at is refused by the linter.
      if (isNode(argument))
        yield lost("await", `${parent?.type === "ExpressionStatement" ? "void " : ""}${textOf(argument)}`);
      break;
    case "ReturnStatement":
    case "ThrowStatement":
    case "ContinueStatement":
      if (node.type !== "ReturnStatement" || !isNode(argument)) yield lost("statement");
      break;
    case "ExpressionStatement":
      if (!/^super\(|^"use /.test(textOf(node))) yield lost("statement");
      break;
    case "VariableDeclaration":
      if (String(node["kind"]).endsWith("using"))
        yield lost("statement", textOf(node).replace(/^(await )?using/, "const"));
      break;
    case "Property":
      if (parent?.type === "ObjectExpression") yield lost("member", "...{}");
      break;
    case "CallExpression":
      if (isNode(callee) && isNode(callee["object"]) && chained.has(textOf(callee).replace(/^.*\W/s, "")))
        yield lost("statement", textOf(callee["object"]));
      break;
    case "MemberExpression": {
      const other = isNode(property) ? otherMethod.get(textOf(property)) : undefined;
      if (isNode(property) && other !== undefined && parent?.type === "CallExpression")
        yield lost("flip", other, property);
      break;
    }
    case "TemplateElement":
    case "Literal":
      yield* otherLiterals(node, textOf(node)).map((code) => lost("flip", code));
      break;
  }
}

/** Yields steps in the order of each other, where that may matter: one ends what is done, or both use one object. */
function* swappedSteps(steps: readonly Node[], textOf: TextOf): Generator<Fault> {
  for (const [at, step] of steps.entries()) {
    const next = steps[at + 1];
    // Two conditions that follow each other mostly exclude each other.
    if (next === undefined || !isStep(step) || !isStep(next) || step.type + next.type === "IfStatementIfStatement")
      continue;
    const [one, other] = [textOf(step), textOf(next)];
    const mayMatter =
      [step, next].flatMap(partsOf).some(({ type }) => /^(Await|Return|Throw)/.test(type)) ||
      callsIn(step, textOf).some((a) => callsIn(next, textOf).some((b) => a.object === b.object && !canSwap(a, b)));
    if (one !== other && mayMatter) yield { kind: "order", start: step.start, end: next.end, code: `${other}\n${one}` };
  }
}

/** Returns a node and what runs with it: all nodes in it that are not in a function of their own. */
function partsOf(node: Node): Node[] {
  if (/Function/.test(node.type)) return [];
  return [node, ...childrenOf(node).flatMap(partsOf)];
}

/** A call of a method: `this.#socket` and `end` of `this.#socket.end()`, and its first argument. */
type MethodCall = Readonly<Record<"object" | "method" | "argument", string>>;

function callsIn(step: Node, textOf: TextOf): MethodCall[] {
  return partsOf(step).flatMap(({ callee, end }) => {
    if (!isNode(callee) || !isNode(callee["object"]) || !isNode(callee["property"])) return [];
    const [argument = ""] = textOf({ start: callee.end, end }).split(",");
    return [{ object: textOf(callee["object"]), method: textOf(callee["property"]), argument }];
  });
}

/**
 * Returns whether two calls of an object only read it, set two things of it, or have it note two events or metrics; or it
 * is no object.
 */
function canSwap(a: MethodCall, b: MethodCall): boolean {
  const both = (pattern: RegExp): boolean => pattern.test(a.method) && pattern.test(b.method);
  const isNamespace = /^(Object|Math|Number|Buffer|performance)$/.test(a.object);
  const noteOthers = both(/^(on(ce|[A-Z]\w*)?|gauge|observedCounter)$/) && a.argument !== b.argument;
  const setOthers = both(/^(add|set|update)[A-Z]/) && (a.method !== b.method || a.argument !== b.argument);
  return isNamespace || noteOthers || setOthers || both(/^(get|has|read|to)[A-Z]/);
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
    // Large numbers are doubled: a time of 250 ms that is off by a millisecond is the same time.
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
