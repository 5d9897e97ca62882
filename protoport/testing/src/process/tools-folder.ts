import { accessSync, constants, mkdirSync } from "node:fs";
import { homedir } from "node:os";
import { delimiter, join, resolve } from "node:path";

/** Returns a folder for tools and builds that are kept between runs, in `TEST_TOOLS` or ~/.cache/gateway-tests. */
export function toolsFolder(name: string): string {
  const folder = resolve(process.env["TEST_TOOLS"] || join(homedir(), ".cache", "gateway-tests"), name);
  mkdirSync(folder, { recursive: true });
  return folder;
}

export const hasProgram = (name: string): boolean =>
  (process.env["PATH"] ?? "").split(delimiter).some((folder) => isExecutable(join(folder, name)));

function isExecutable(path: string): boolean {
  try {
    accessSync(path, constants.X_OK);
    return true;
  } catch {
    return false;
  }
}
