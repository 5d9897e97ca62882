import { parseAst } from "rolldown/parseAst";
import { childrenOf, isNode, isType, type Node, nodesIn } from "./syntax.ts";

type Declaration = { readonly kind: string; readonly names: readonly string[] };

const declarationsIn = (text: string, program: Node): Declaration[] =>
  nodesIn(program["body"]).flatMap((statement) => {
    const exported = statement.type === "ExportNamedDeclaration" ? nodesIn(statement["declaration"]) : [statement];
    return exported
      .filter(({ type }) => type === "VariableDeclaration")
      .map(({ kind, declarations }) => {
        const ids = nodesIn(declarations).flatMap(({ id }) => nodesIn(id));
        const names = ids.map(nameIn(text));
        return { kind: String(kind), names };
      });
  });

/** Returns a variable's name, or the source of a destructuring pattern. */
const nameIn =
  (text: string): ((node: Node) => string) =>
  ({ start, end, name }) =>
    typeof name === "string" ? name : text.slice(start, end);

function parse(text: string): Node {
  const program: unknown = parseAst(text, { lang: "ts" });
  if (!isNode(program)) throw new TypeError("the source has no syntax tree");
  return program;
}

/** Returns the names of the variables in a module, which are state. */
export const moduleVariablesIn = (text: string, program: Node = parse(text)): string[] =>
  declarationsIn(text, program).flatMap(({ kind, names }) => (kind === "const" ? [] : names));

/** Returns the module constants that have state because a function assigns a member. */
export function assignedConstantsIn(text: string, program: Node = parse(text)): string[] {
  const owners = new Set(targetsIn(program, false).flatMap(ownerOf));
  return declarationsIn(text, program)
    .flatMap(({ kind, names }) => (kind === "const" ? names : []))
    .filter((name) => owners.has(name));
}

/** Returns the targets of the assignments in the functions of a node, which may itself be in a function. */
function targetsIn(node: Node, isInFunction: boolean, found: Node[] = []): Node[] {
  if (isType(node)) return found;
  const { type, left, argument } = node;
  const target = type === "AssignmentExpression" ? left : type === "UpdateExpression" ? argument : undefined;
  if (isInFunction) found.push(...nodesIn(target));
  for (const child of childrenOf(node)) targetsIn(child, isInFunction || type.includes("Function"), found);
  return found;
}

/** Returns the variable whose value contains a member. */
function ownerOf({ type, object, property }: Node): string[] {
  // An assignment to lastIndex only sets the position at which a regular expression starts.
  const isMember = type === "MemberExpression" && !nodesIn(property).some(({ name }) => name === "lastIndex");
  if (!isMember) return [];
  return nodesIn(object).flatMap((owner) => (typeof owner["name"] === "string" ? [owner["name"]] : ownerOf(owner)));
}
