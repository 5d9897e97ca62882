import type { ParseResult } from "@plantstore/auth/inputs";
import type { PlantErrorCode } from "../service/index.ts";

/** The error for a configuration that cannot be used, with one sentence per problem. */
export class ConfigurationError extends Error {
  override readonly name = "ConfigurationError";
  /** As node's errors have one; see docs/reference/identifiers.md. */
  readonly code: PlantErrorCode = "ERR_CONFIGURATION";
  readonly problems: readonly string[];

  constructor(problems: readonly string[]) {
    super(problems.join("; "));
    this.problems = problems;
  }
}

/**
 * Returns the value that was read.
 *
 * @param must - the beginning of the sentence that a problem continues, such as "PORT must "
 * @throws ConfigurationError with the problems instead
 */
export function valueOf<Value>(reading: ParseResult<Value>, must: string = ""): Value {
  if (reading.kind === "value") return reading.value;
  throw new ConfigurationError(reading.problems.map((problem) => must + problem));
}
