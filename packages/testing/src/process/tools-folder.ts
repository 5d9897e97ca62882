import { accessSync, constants, mkdirSync } from "node:fs";
import { homedir } from "node:os";
import { delimiter, join, resolve } from "node:path";

/**
 * A folder outside of the checkout in which tools and builds of the tests are kept from one run to the next;
 * `PLANTSTORE_TOOLS` moves all of them.
 */
export function toolsFolder(name: string): string {
  const folder = resolve(process.env["PLANTSTORE_TOOLS"] || join(homedir(), ".cache", "plantstore-tests"), name);
  mkdirSync(folder, { recursive: true });
  return folder;
}

/** Whether a program is on PATH. */
export function hasProgram(name: string): boolean {
  return (process.env["PATH"] ?? "").split(delimiter).some((folder) => isExecutable(join(folder, name)));
}

function isExecutable(path: string): boolean {
  try {
    accessSync(path, constants.X_OK);
    return true;
  } catch {
    return false;
  }
}
