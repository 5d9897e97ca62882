import { readFileSync } from "node:fs";
import { innermost, blocksOf } from "./blocks-of.ts";
import { faultsOf } from "./faults-of.ts";

/** A fault of one file, and the text of the file with it. */
export interface PlantedFault {
  readonly file: string;
  readonly room: string;
  readonly line: number;
  /** The line, without its indentation. */
  readonly text: string;
  /** The line before it, likewise. */
  readonly textBefore: string;
  readonly change: string;
  readonly faulty: string;
  /** The index of the block that it lies in, among the {@link blocksOf} its file. */
  readonly block: number;
}

/** Returns every fault that can be planted in a file of the project, in its order. */
export function faultsIn(file: string): PlantedFault[] {
  const source = readFileSync(file, "utf8");
  const blocks = blocksOf(source);
  return faultsOf(source).map((fault) => {
    const { start, end, code } = fault;
    const before = source.slice(0, start).split("\n");
    const lineStart = source.lastIndexOf("\n", start - 1) + 1;
    return {
      file,
      room: roomOf(file),
      line: before.length,
      text: source.slice(lineStart, source.indexOf("\n", start)).trim(),
      textBefore: before.at(-2)?.trim() ?? "",
      change: `${short(source.slice(start, end))} → ${short(code)}`,
      faulty: source.slice(0, start) + code + source.slice(end),
      block: innermost(blocks, fault),
    };
  });
}

/** Returns the room of a file of `src`, such as `gateway/json`. */
export function roomOf(file: string): string {
  return /^src\/(gateway\/\w+(?=\/)|\w+)/.exec(file)?.[1] ?? "";
}

function short(code: string): string {
  const line = code.replace(/\s+/g, " ");
  return line.length > 80 ? `${line.slice(0, 79)}…` : line;
}
