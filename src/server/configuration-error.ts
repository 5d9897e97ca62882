import type { ParseResult } from "@protoport/auth/inputs";
import type { PlantErrorCode } from "../service/index.ts";

/** The error for an invalid configuration, with one message per problem. */
export class ConfigurationError extends Error {
  override readonly name = "ConfigurationError";
  /** The error identifier. See docs/reference/errors.md. */
  readonly code: PlantErrorCode = "ERR_CONFIGURATION";
  readonly problems: readonly string[];

  constructor(problems: readonly string[]) {
    super(problems.join("; "));
    this.problems = problems;
  }
}

/**
 * Returns the value of a parse result.
 *
 * @param prefix - the start of each message, such as "PORT must "
 * @throws ConfigurationError if the result has problems
 */
export function valueOrThrow<Value>(result: ParseResult<Value>, prefix: string = ""): Value {
  if (result.kind === "value") return result.value;
  throw new ConfigurationError(result.problems.map((problem) => prefix + problem));
}
