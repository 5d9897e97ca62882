import { readFileSync } from "node:fs";
import { blocksOf, innermostBlock } from "./blocks.ts";
import { type Mutation, mutationsOf } from "./mutations-of.ts";

/** A source file with one mutation. */
export interface Mutant extends Pick<Mutation, "kind"> {
  readonly file: string;
  readonly module: string;
  readonly line: number;
  /** The original line, without its indentation. */
  readonly text: string;
  readonly change: string;
  /** The file's text with the mutation. */
  readonly source: string;
  /** The index of the block that contains the mutation, in {@link blocksOf} the file. */
  readonly block: number;
}

/**
 * Matches the start of a comment, at the end of a line or above it, that states why the line's mutants are equivalent.
 */
const equivalentMark = /\/\/ equivalent mutant: /i;

/** Returns a project file's mutants, in source order, without equivalent mutants. */
export function mutantsIn(file: string): Mutant[] {
  const source = readFileSync(file, "utf8");
  const lines = source.split("\n");
  const blocks = blocksOf(source);
  return mutationsOf(source)
    .map((mutation) => {
      const { kind, start, end, code } = mutation;
      const line = source.slice(0, start).split("\n").length;
      return {
        kind,
        file,
        module: moduleOf(file),
        line,
        text: lines[line - 1]?.trim() ?? "",
        change: `${shorten(source.slice(start, end))} → ${shorten(code)}`,
        source: source.slice(0, start) + code + source.slice(end),
        block: innermostBlock(blocks, mutation),
      };
    })
    .filter(({ line }) => !isEquivalent(lines, line));
}

/** Returns whether a line, counted from 1, is marked as having equivalent mutants only. */
function isEquivalent(lines: readonly string[], line: number): boolean {
  const above = lines.slice(0, line - 1).findLastIndex((each) => !/^\s*\/\//.test(each));
  return lines.slice(above + 1, line).some((each) => equivalentMark.test(each));
}

/** Returns a source file's module, such as `protobuf/messages/json`. Each store is a separate module. */
export function moduleOf(file: string): string {
  const [, name = "plantstore", path = ""] =
    /^protoport\/gateway\/src\/([^/]+)\/(.*)$/.exec(file) ?? /^(?:protoport\/([^/]+)\/)?src\/(.*)$/.exec(file) ?? [];
  const folder = /^(?:stores\/\w+|messages\/\w+|rest\/rules|[\w-]+)(?=\/)/.exec(path)?.[0];
  return folder === undefined ? name : `${name}/${folder}`;
}

function shorten(code: string): string {
  const line = code.replace(/\s+/g, " ");
  return line.length > 100 ? `${line.slice(0, 99)}…` : line;
}
