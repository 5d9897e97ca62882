import { parseAst } from "rolldown/parseAst";
import { childrenOf, isNode, isType, type Node } from "../../protoport/testing/src/syntax.ts";

/** A part of a source that runs completely or not at all, unless a statement in the part exits early. */
export interface Block {
  readonly start: number;
  readonly end: number;
  /** Whether the block is an expression that is an arrow function's body. */
  readonly isExpression: boolean;
}

/** Returns a TypeScript source's blocks, first the file, then its functions, branches, loops and cases. */
export function blocksOf(source: string): Block[] {
  // Nothing may be inserted before a `#!` line.
  const start = /^#!.*\n/.exec(source)?.[0].length ?? 0;
  const blocks: Block[] = [{ start, end: source.length, isExpression: false }];
  const visit = (node: Node): void => {
    if (isType(node)) return;
    const { type, body, consequent } = node;
    if (type === "BlockStatement") blocks.push({ start: node.start + 1, end: node.end, isExpression: false });
    if (type === "ArrowFunctionExpression" && isNode(body) && body.type !== "BlockStatement")
      blocks.push({ start: body.start, end: body.end, isExpression: true });
    if (type === "SwitchCase" && Array.isArray(consequent) && isNode(consequent[0]))
      blocks.push({ start: consequent[0].start, end: node.end, isExpression: false });
    childrenOf(node).forEach(visit);
  };
  const program: unknown = parseAst(source, { lang: "ts" });
  if (isNode(program)) visit(program);
  return blocks;
}

/** Returns the index of the smallest block that contains a part of the source. */
export function innermostBlock(
  blocks: readonly Block[],
  part: { readonly start: number; readonly end: number },
): number {
  // Each block comes after the blocks that contain it.
  const last = blocks.findLastIndex(({ start, end }) => start <= part.start && part.end <= end);
  return Math.max(0, last);
}

/**
 * Returns a source that reports each block that is entered to `globalThis.recordEnteredBlock`, as `file#block`. Line
 * numbers do not change. If `recordEnteredBlock` is not defined, such as in a process that a test starts, the module
 * `fallback` is loaded to define it.
 */
export function instrument(source: string, file: string, fallback: string): string {
  const name = "globalThis.recordEnteredBlock";
  const load = `globalThis.process?.getBuiltinModule("module").createRequire(${JSON.stringify(fallback)})(${JSON.stringify(fallback)});`;
  const insertions = blocksOf(source).flatMap(({ start, end, isExpression }, at) => {
    const call = `${name}?.(${JSON.stringify(`${file}#${at}`)})`;
    const first = at === 0 ? `if (!${name}) ${load} ${call};` : `${call};`;
    return isExpression
      ? [
          { at: start, code: `(${call}, ` },
          { at: end, code: ")" },
        ]
      : [{ at: start, code: first }];
  });
  return insertions
    .toSorted((a, b) => b.at - a.at)
    .reduce((text, { at, code }) => text.slice(0, at) + code + text.slice(at), source);
}
