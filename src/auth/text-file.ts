import type { Stats } from "node:fs";
import { readFile, stat } from "node:fs/promises";

import { parsed, unparsed, type Parsed } from "./parsed.ts";

/** Reads a regular file as UTF-8; `limitBytes` keeps a log or an image given by mistake out of memory. */
export async function readTextFile(path: string, limitBytes: number): Promise<Parsed<string>> {
  const stats = await statRegularFile(path);
  if (stats.kind === "problems") return stats;
  if (stats.value.size > limitBytes) return unparsed(`${path} is larger than ${limitBytes} bytes`);
  return await readFile(path, "utf8").then(parsed, toProblem);
}

/** Looks at a file; a pipe is refused, which would keep its reader waiting for ever, and a device, which may go on for ever. */
export async function statRegularFile(path: string): Promise<Parsed<Stats>> {
  try {
    const stats = await stat(path);
    return stats.isFile() ? parsed(stats) : unparsed(`${path} is not a regular file`);
  } catch (error) {
    return toProblem(error);
  }
}

/** Turns what a call of `node:fs` threw into a problem; its message names the call and the path. */
export function toProblem(error: unknown): Parsed<never> {
  return unparsed(error instanceof Error ? error.message : String(error));
}
