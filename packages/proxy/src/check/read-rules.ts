import type { OutsideHttpRule } from "@plantstore/gateway/rest";
import { parseServiceRules, serviceConfigMaxBytes } from "../service-config/index.ts";
import { messageOf } from "@plantstore/gateway/internal/errors";
import { InputProblem, readBytes } from "./read-services.ts";

/** Reads the HTTP rules of a service config. @throws InputProblem for a file that has none */
export async function readRules(path: string): Promise<readonly OutsideHttpRule[]> {
  const bytes = await readBytes(path);
  if (bytes.byteLength > serviceConfigMaxBytes)
    throw new InputProblem(`${path} has more than ${serviceConfigMaxBytes} bytes`);
  try {
    return parseServiceRules(new TextDecoder().decode(bytes));
  } catch (error) {
    throw new InputProblem(`${path} has no rules: ${messageOf(error)}`);
  }
}
