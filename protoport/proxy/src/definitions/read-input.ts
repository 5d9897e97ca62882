import { readRegularFile } from "@protoport/command-line";
import { messageOf } from "@protoport/gateway/errors";
import type { ExternalHttpRule } from "@protoport/gateway/rest";
import { locateSelectors, parseServiceRules, maxServiceConfigBytes } from "./service-config.ts";

/** Reads a text file. @throws InputError if it is empty, larger than `maxBytes`, not a regular file, or unreadable */
export async function readInput(path: string, maxBytes: number): Promise<string> {
  const text = await readText(path, maxBytes);
  if (text === "") throw new InputError(`${path} is empty`);
  return text;
}

/** Reads a text file, which may be empty. @throws as {@link readInput} does */
export async function readText(path: string, maxBytes: number): Promise<string> {
  const bytes = await readRegularFile(path, maxBytes).catch((error: unknown) => {
    throw new InputError(`cannot read ${path}: ${messageOf(error)}`);
  });
  return new TextDecoder().decode(bytes);
}

/** Thrown for an invalid file or argument. The message is shown to the command's user. */
export class InputError extends Error {}

/** Reads a service config's HTTP rules. @throws InputError if the file contains no rules */
export async function readRules(path: string): Promise<readonly ExternalHttpRule[]> {
  const text = await readInput(path, maxServiceConfigBytes);
  try {
    return parseServiceRules(text);
  } catch (error) {
    throw new InputError(`cannot read the HTTP rules of ${path}: ${messageOf(error)}`);
  }
}

/** Returns the line and column of each selector in a service config, as {@link locateSelectors} does. */
export async function readSelectorPlaces(path: string): Promise<ReturnType<typeof locateSelectors>> {
  return locateSelectors(await readInput(path, maxServiceConfigBytes));
}
