import { readFileSync } from "node:fs";
import { innermost, blocksOf } from "./blocks-of.ts";
import { type Fault, faultsOf } from "./faults-of.ts";

/** A fault of one file, and the text of the file with it. */
export interface PlantedFault extends Pick<Fault, "kind"> {
  readonly file: string;
  readonly room: string;
  readonly line: number;
  /** The line, without its indentation. */
  readonly text: string;
  readonly change: string;
  readonly faulty: string;
  /** The index of the block that it lies in, among the {@link blocksOf} its file. */
  readonly block: number;
}

/** Begins the comment that says, at the end of a line or above it, why no test can notice a fault of that line. */
const harmlessMark = /\/\/ No test can tell: /;

/** Returns every fault that can be planted in a file of the project, in its order, except for harmless ones. */
export function faultsIn(file: string): PlantedFault[] {
  const source = readFileSync(file, "utf8");
  const lines = source.split("\n");
  const blocks = blocksOf(source);
  return faultsOf(source)
    .map((fault) => {
      const { kind, start, end, code } = fault;
      const line = source.slice(0, start).split("\n").length;
      return {
        kind,
        file,
        room: moduleOf(file),
        line,
        text: lines[line - 1]?.trim() ?? "",
        change: `${short(source.slice(start, end))} → ${short(code)}`,
        faulty: source.slice(0, start) + code + source.slice(end),
        block: innermost(blocks, fault),
      };
    })
    .filter(({ line }) => !isHarmless(lines, line));
}

/** Returns whether a line, which is counted from 1, is marked. */
function isHarmless(lines: readonly string[], line: number): boolean {
  const above = lines.slice(0, line - 1).findLastIndex((each) => !/^\s*\/\//.test(each));
  return lines.slice(above + 1, line).some((each) => harmlessMark.test(each));
}

/** Returns the module of a source file, such as `gateway/messages/json`; each store is a module, too. */
export function moduleOf(file: string): string {
  const [, name = "plantstore", path = ""] = /^(?:packages\/([^/]+)\/)?src\/(.*)$/.exec(file) ?? [];
  const folder = /^(?:stores\/\w+|messages\/\w+|protocols\/rest\/rules|[\w-]+)(?=\/)/.exec(path)?.[0];
  return folder === undefined ? name : `${name}/${folder}`;
}

function short(code: string): string {
  const line = code.replace(/\s+/g, " ");
  return line.length > 100 ? `${line.slice(0, 99)}…` : line;
}
