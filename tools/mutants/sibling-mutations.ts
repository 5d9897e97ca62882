import type { Mutation } from "./mutations-of.ts";
import { childrenOf, isNode, isType, type Node, nodesIn } from "../../protoport/testing/src/syntax.ts";

/** A name and its type's text. */
type Declared = readonly [name: string, type: string];

/**
 * Returns the mutations that replace a name by a sibling with the same type. The sibling is a parameter of the same
 * function, a field of the same type or class, or a constant in the file whose number has the same unit.
 */
export function siblingMutations(program: Node, source: string): Mutation[] {
  const typeOf = (node: unknown): string => {
    const type = isNode(node) ? node["typeAnnotation"] : undefined;
    return isNode(type) ? source.slice(type.start, type.end) : "";
  };
  const fields = siblings(declaredFields(program, typeOf));
  const mutations: Mutation[] = [];
  const replace = (node: Node, code: string): unknown =>
    mutations.push({ kind: "sibling", start: node.start, end: node.end, code });
  const visit = (node: Node, names: ReadonlyMap<string, string>): void => {
    const { type, property, key, value, id, params, body } = node;
    if (isType(node) || type === "ImportDeclaration" || type === "ObjectPattern") return;
    const inner = new Map([...names, ...siblings([declaredParameters(params, typeOf), declaredNumbers(body)])]);
    const isNamed = node["computed"] !== true;
    if (type === "Identifier") {
      const other = names.get(String(node["name"]));
      if (other !== undefined) replace(node, other);
    }
    if (type === "MemberExpression" && isNamed && isNode(property)) {
      const other = fields.get(source.slice(property.start, property.end));
      if (other !== undefined) replace(property, other);
    }
    if (node["shorthand"] === true && isNode(value)) {
      const other = names.get(source.slice(value.start, value.end));
      if (other !== undefined) replace(node, `${source.slice(value.start, value.end)}: ${other}`);
      return;
    }
    const skipped = new Set([...(isNamed ? [key, property] : []), id, ...nodesIn(params)]);
    for (const child of childrenOf(node)) if (!skipped.has(child)) visit(child, inner);
  };
  visit(program, new Map());
  return mutations;
}

/** Maps each name to the next name with the same type. Omits names that are declared in several places. */
function siblings(lists: readonly (readonly Declared[])[]): ReadonlyMap<string, string> {
  const others = new Map<string, string>();
  const known = new Set<string>();
  for (const list of lists)
    for (const [name, type] of list) {
      const ofType = list.filter((each) => each[1] === type && type !== "").map(([each]) => each);
      const other = ofType[(ofType.indexOf(name) + 1) % ofType.length];
      if (known.has(name)) others.delete(name);
      else if (other !== undefined && other !== name) others.set(name, other);
      known.add(name);
    }
  return others;
}

function declaredParameters(params: unknown, typeOf: (node: unknown) => string): Declared[] {
  return nodesIn(params).flatMap((param): Declared[] => {
    if (param.type === "Identifier") return [[String(param["name"]), typeOf(param)]];
    const type = param["typeAnnotation"];
    const literal = isNode(type) ? type["typeAnnotation"] : undefined;
    return param.type === "ObjectPattern" && isNode(literal) ? declaredMembers(literal["members"], typeOf) : [];
  });
}

function declaredMembers(members: unknown, typeOf: (node: unknown) => string): Declared[] {
  return nodesIn(members).flatMap((member): Declared[] => {
    const { type, key, value } = member;
    if (!/^(TSPropertySignature|PropertyDefinition)$/.test(type) || !isNode(key)) return [];
    const name = `${key.type === "PrivateIdentifier" ? "#" : ""}${String(key["name"])}`;
    return [[name, typeOf(member) || (isNumber(value) ? "number" : "")]];
  });
}

function declaredNumbers(body: unknown): Declared[] {
  return nodesIn(body)
    .map(({ declaration, ...node }) => (isNode(declaration) ? declaration : node))
    .flatMap(({ declarations }) => nodesIn(declarations))
    .flatMap(({ id, init }): Declared[] => (isNode(id) && isNumber(init) ? [declaredNumber(String(id["name"]))] : []));
}

/**
 * The unit is a name's last word, or the word before "Max" or "Min". Numbers with different units are not siblings,
 * because nobody confuses milliseconds and bytes.
 */
function declaredNumber(name: string): Declared {
  return [name, /[A-Z]?[a-z]*(?=(?:Max|Min)?$)/.exec(name)?.[0] ?? ""];
}

function isNumber(node: unknown): boolean {
  if (!isNode(node)) return false;
  const { value, left, right } = node;
  return typeof value === "number" || (node.type === "BinaryExpression" && isNumber(left) && isNumber(right));
}

/** Returns the fields of each type and class in a source. */
function declaredFields(node: Node, typeOf: (node: unknown) => string): Declared[][] {
  const { type, members, body } = node;
  const fields = type === "TSTypeLiteral" ? members : /^(TSInterfaceBody|ClassBody)$/.test(type) ? body : [];
  return [declaredMembers(fields, typeOf), ...childrenOf(node).flatMap((child) => declaredFields(child, typeOf))];
}
