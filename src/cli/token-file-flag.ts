import type { ParseArgsOptionsConfig } from "node:util";
import { ConfigurationError, settings } from "../server/index.ts";
import { type Flags, type Terminal, textOf } from "./command.ts";

const { variable } = settings.tokenHashesFile;

/** The flag that tells which file of token hashes a command is about. */
export const tokenFileFlag: ParseArgsOptionsConfig = { file: { type: "string" } };

/** The line about it in `--help`. */
export const tokenFileHelp: string = `  --file F  the file of token hashes; default ${variable}`;

/**
 * Returns the file of token hashes that a command is about.
 *
 * @throws ConfigurationError when neither flag nor variable names it
 */
export function tokenFileOf(flags: Flags, { environment }: Terminal): string {
  const file = textOf(flags["file"]) ?? environment[variable];
  if (file === undefined || file === "") throw new ConfigurationError([`--file or ${variable} must name a file`]);
  return file;
}
