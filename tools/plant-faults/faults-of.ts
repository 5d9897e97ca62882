import { parseAst } from "rolldown/parseAst";
import { siblingFaults } from "./sibling-faults.ts";
import { isNode, isType, type Node } from "./syntax.ts";

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

const otherOperator: ReadonlyMap<unknown, string> = new Map([
  ["<", "<="],
  ["<=", "<"],
  [">", ">="],
  [">=", ">"],
  ["===", "!=="],
  ["!==", "==="],
  ["+=", "-="],
  ["-=", "+="],
  ["??=", "="],
]);

const otherMethod: ReadonlyMap<string, string> = new Map(
  [
    ["min", "max"],
    ["some", "every"],
    ["shift", "pop"],
    ["push", "unshift"],
    ["startsWith", "endsWith"],
    ["indexOf", "lastIndexOf"],
  ].flatMap(([one = "", other = ""]) => [[one, other] as const, [other, one] as const]),
);

/** Methods that are called for what they leave behind, and can be left out of a chain. */
const chained = new Set(["finally", "unref"]);

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
  const program: unknown = parseAst(source, { lang: "ts" });
  if (!isNode(program)) return [];
  const faults: Fault[] = [];
  const planter = new Planter(source, faults);
  const visit = (node: Node, parent: Node | undefined, tried: boolean, returned: boolean): void => {
    if (isType(node) || node.type === "ImportDeclaration") return;
    // Outside of `try` it makes no difference whether a promise is awaited before it is returned.
    if (tried || !returned || node.type !== "AwaitExpression") planter.plant(node, parent);
    const triedInside = node.type === "TryStatement" || (tried && !/Function/.test(node.type));
    for (const child of Object.values(node).flat().filter(isNode))
      visit(child, node, triedInside, isReturned(child, node, returned));
  };
  visit(program, undefined, false, false);
  faults.push(...siblingFaults(program, source));
  return faults.toSorted((a, b) => a.start - b.start || a.end - b.end);
}

/** Returns whether a function returns the value of a node. */
function isReturned(node: Node, parent: Node, parentIsReturned: boolean): boolean {
  if (parent.type === "ConditionalExpression") return parentIsReturned && node !== parent["test"];
  return parent.type === "ReturnStatement" || parent.type === "ArrowFunctionExpression";
}

class Planter {
  readonly #source: string;
  readonly #faults: Fault[];

  constructor(source: string, faults: Fault[]) {
    this.#source = source;
    this.#faults = faults;
  }

  plant(node: Node, parent: Node | undefined): void {
    const { test, operator, argument, left, right, property, object, callee } = node;
    if (Array.isArray(node["body"])) this.#swap(node["body"].filter(isNode));
    switch (node.type) {
      case "IfStatement":
      case "ConditionalExpression":
        if (isNode(test)) for (const forced of ["true", "false"]) this.#replace("flip", test, forced);
        break;
      case "LogicalExpression":
        if (!isNode(left) || !isNode(right)) break;
        if (operator !== "??") this.#replace("half", node, this.#text(left));
        this.#replace("half", node, `(${this.#text(right)})`);
        break;
      case "BinaryExpression":
      case "AssignmentExpression":
        this.#flipOperator(node);
        break;
      case "UnaryExpression":
        if (operator === "!" && isNode(argument) && node !== parent?.["test"])
          this.#replace("flip", node, this.#text(argument));
        break;
      case "AwaitExpression":
        if (isNode(argument)) this.#replace("await", node, this.#text(argument));
        break;
      case "ReturnStatement":
        if (!isNode(argument)) this.#replace("statement", node, ";");
        break;
      case "ThrowStatement":
      case "ContinueStatement":
      case "BreakStatement":
        // A case that goes on with the next one is refused by the linter.
        if (parent?.type !== "SwitchCase") this.#replace("statement", node, ";");
        break;
      case "ExpressionStatement":
        if (!/^super\(|^"use /.test(this.#text(node))) this.#replace("statement", node, ";");
        break;
      case "VariableDeclaration":
        if (String(node["kind"]).endsWith("using"))
          this.#replace("statement", node, this.#text(node).replace(/^(await )?using/, "const"));
        break;
      case "Property":
        if (parent?.type === "ObjectExpression") this.#replace("member", node, "...{}");
        break;
      case "CallExpression":
        if (isNode(callee) && isNode(callee["object"]) && chained.has(this.#text(callee).replace(/^.*\W/s, "")))
          this.#replace("statement", node, this.#text(callee["object"]));
        break;
      case "MemberExpression": {
        const other = isNode(property) ? otherMethod.get(this.#text(property)) : undefined;
        if (isNode(property) && isNode(object) && other !== undefined && parent?.type === "CallExpression")
          this.#replace("flip", property, other);
        break;
      }
      case "TemplateElement":
      case "Literal":
        for (const code of otherLiterals(node, this.#text(node))) this.#replace("flip", node, code);
        break;
    }
  }

  #text(node: Node): string {
    return this.#source.slice(node.start, node.end);
  }

  #replace(kind: FaultKind, { start, end }: { readonly start: number; readonly end: number }, code: string): void {
    this.#faults.push({ kind, start, end, code });
  }

  #flipOperator({ left, right, operator }: Node): void {
    const other = otherOperator.get(operator);
    if (other !== undefined && isNode(left) && isNode(right))
      this.#replace("flip", { start: left.start, end: right.end }, `${this.#text(left)} ${other} ${this.#text(right)}`);
  }

  /** Swaps steps that follow each other, if both do something that the other may depend on. */
  #swap(steps: readonly Node[]): void {
    for (const [at, step] of steps.entries()) {
      const next = steps[at + 1];
      if (next === undefined || !isStep(step) || !isStep(next)) continue;
      const [one, other] = [this.#text(step), this.#text(next)];
      if (!mayDepend(one, other)) continue;
      this.#replace("order", { start: step.start, end: next.end }, `${other}\n${one}`);
    }
  }
}

/** Returns whether the order of two steps may matter: one ends what is done here, or both call the same object. */
function mayDepend(one: string, other: string): boolean {
  const called = (text: string): string[] => Array.from(text.matchAll(/([\w#]+)[\w#.?]*\(/g), ([, root = ""]) => root);
  const areRelated = called(one).some((root) => called(other).includes(root));
  return one !== other && (areRelated || /\b(await|return|throw)\b/.test(`${one} ${other}`));
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
    // Large numbers are doubled: a time of 5 s that is off by a millisecond is the same time.
    case "number":
      return [String(node["value"] >= 1000 ? node["value"] * 2 : node["value"] + 1)];
    default:
      return node["regex"] === undefined ? otherSql(text) : otherPatterns(text);
  }
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
