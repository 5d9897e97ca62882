import type { ExternalHttpRule } from "@plantstore/gateway/rest";
import { parseServiceRules, serviceConfigMaxBytes } from "../service-config/index.ts";
import { messageOf } from "@plantstore/gateway/internal/errors";
import { InputError, readBytes } from "./read-services.ts";

/** Reads the HTTP rules of a service config. @throws InputError if the file contains no rules */
export async function readRules(path: string): Promise<readonly ExternalHttpRule[]> {
  const bytes = await readBytes(path);
  if (bytes.byteLength > serviceConfigMaxBytes)
    throw new InputError(`${path} is larger than ${serviceConfigMaxBytes} bytes`);
  try {
    return parseServiceRules(new TextDecoder().decode(bytes));
  } catch (error) {
    throw new InputError(`cannot read the HTTP rules of ${path}: ${messageOf(error)}`);
  }
}
