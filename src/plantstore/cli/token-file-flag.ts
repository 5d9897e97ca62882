import { ConfigurationError, settings } from "../server/index.ts";
import { type Flag, type GivenFlags, type Terminal, textOf } from "./command.ts";

const { variable } = settings.tokenHashesFile;

/** The flag that names the file of token hashes that a command is about. */
export const tokenFileFlag: Readonly<Record<string, Flag>> = {
  file: { value: "FILE", about: `the file of token hashes; default ${variable}` },
};

/**
 * Returns the file of token hashes that a command is about.
 *
 * @throws ConfigurationError when neither flag nor variable names it
 */
export function tokenFileOf(flags: GivenFlags, { environment }: Terminal): string {
  const file = textOf(flags["file"]) ?? environment[variable];
  if (file === undefined || file === "") throw new ConfigurationError([`--file or ${variable} must name a file`]);
  return file;
}
