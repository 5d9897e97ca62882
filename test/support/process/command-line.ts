import { join } from "node:path";
import { projectFolder } from "../../../protoport/testing/src/process/child-program.ts";
import { type CommandLine, startNode } from "../../../protoport/testing/src/process/command-line.ts";

/** Starts `plantstore` from source, in a folder and with only PATH, a compile cache and the given environment. */
export const startCommandLine = (
  args: readonly string[],
  folder: string,
  environment: Readonly<Record<string, string>> = {},
): CommandLine => startNode([join(projectFolder, "src/command/main.ts"), ...args], folder, environment);
