/** A node of the syntax tree of a source. */
export type Node = {
  readonly type: string;
  readonly start: number;
  readonly end: number;
  readonly [key: string]: unknown;
};

/** Whether a value in a syntax tree is a node. */
export function isNode(value: unknown): value is Node {
  return typeof value === "object" && value !== null && "type" in value && "start" in value && "end" in value;
}

/** Whether a node is a type, which is gone when the code runs. Both kinds of casts hold an expression that is not. */
export function isType({ type }: Node): boolean {
  return type.startsWith("TS") && type !== "TSAsExpression" && type !== "TSSatisfiesExpression";
}
