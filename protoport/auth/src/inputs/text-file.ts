import type { Stats } from "node:fs";
import { stat } from "node:fs/promises";

import { readRegularFile } from "@protoport/command-line";
import { explainSystemError } from "./explain-system-error.ts";
import { parsed, withProblems, type ParseResult } from "./parse-result.ts";

/** Reads a regular file as UTF-8. `limitBytes` bounds memory if a wrong file is configured, such as a disk image. */
export async function readTextFile(path: string, limitBytes: number): Promise<ParseResult<string>> {
  return await readRegularFile(path, limitBytes).then((bytes) => parsed(bytes.toString("utf8")), toProblem);
}

/** Returns a regular file's status. Rejects pipes and devices, because reading them might never end. */
export async function statRegularFile(path: string): Promise<ParseResult<Stats>> {
  try {
    const stats = await stat(path);
    return stats.isFile() ? parsed(stats) : withProblems(`${path} is not a regular file`);
  } catch (error) {
    return toProblem(error);
  }
}

/** Converts a `node:fs` error to a problem that contains the path. */
export function toProblem(error: unknown): ParseResult<never> {
  return withProblems(explainSystemError(error));
}
