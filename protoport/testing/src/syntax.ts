/** A node in a source's syntax tree. */
export type Node = {
  readonly type: string;
  readonly start: number;
  readonly end: number;
  readonly [key: string]: unknown;
};

export const isNode = (value: unknown): value is Node =>
  typeof value === "object" && value !== null && "type" in value && "start" in value && "end" in value;

/** Returns whether a node is a type, which does not exist at run time. A cast contains an expression. */
export const isType = ({ type }: Node): boolean =>
  type.startsWith("TS") && type !== "TSAsExpression" && type !== "TSSatisfiesExpression";

/** Returns the nodes in a member of a node. */
export const nodesIn = (member: unknown): Node[] => (typeof member === "object" ? [member].flat().filter(isNode) : []);
export const childrenOf = (node: Node): Node[] => Object.values(node).flatMap(nodesIn);
