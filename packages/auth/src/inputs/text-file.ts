import type { Stats } from "node:fs";
import { readFile, stat } from "node:fs/promises";

import { explainSystemError } from "./explain-system-error.ts";
import { parsed, notParsed, type ParseResult } from "./parse-result.ts";

/**
 * Reads a regular file of at most `limitBytes` as UTF-8. The limit bounds memory if a wrong file is configured, such as
 * a disk image.
 */
export async function readTextFile(path: string, limitBytes: number): Promise<ParseResult<string>> {
  const stats = await statRegularFile(path);
  if (stats.kind === "problems") return stats;
  if (stats.value.size > limitBytes) return notParsed(`${path} is larger than ${limitBytes} bytes`);
  return await readFile(path, "utf8").then(parsed, toProblem);
}

/** Returns the status of a regular file; rejects pipes and devices, because reading them might never end. */
export async function statRegularFile(path: string): Promise<ParseResult<Stats>> {
  try {
    const stats = await stat(path);
    return stats.isFile() ? parsed(stats) : notParsed(`${path} is not a regular file`);
  } catch (error) {
    return toProblem(error);
  }
}

/** Converts an error of `node:fs` to a problem that contains the path. */
export function toProblem(error: unknown): ParseResult<never> {
  return notParsed(explainSystemError(error));
}
