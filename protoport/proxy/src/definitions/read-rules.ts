import type { ExternalHttpRule } from "@protoport/gateway/rest";
import { messageOf } from "@protoport/gateway/errors";
import { locateSelectors, parseServiceRules, serviceConfigMaxBytes } from "./service-config/index.ts";
import { InputError } from "./input-error.ts";
import { readInput } from "./read-input.ts";

/** Reads a service config's HTTP rules. @throws InputError if the file contains no rules */
export async function readRules(path: string): Promise<readonly ExternalHttpRule[]> {
  const text = await readInput(path, serviceConfigMaxBytes);
  try {
    return parseServiceRules(text);
  } catch (error) {
    throw new InputError(`cannot read the HTTP rules of ${path}: ${messageOf(error)}`);
  }
}

/** Returns the line and column of each selector in a service config, as {@link locateSelectors} does. */
export async function readSelectorPlaces(path: string): Promise<ReturnType<typeof locateSelectors>> {
  return locateSelectors(await readInput(path, serviceConfigMaxBytes));
}
