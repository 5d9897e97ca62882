import { ConfigurationError, readConfiguration } from "../../../src/server/index.ts";

type Texts = Readonly<Record<string, string>>;

/** Returns a configuration's problems, or an empty list if it is valid. */
export function problemsOf(environment: Texts, flags: Texts = {}): readonly string[] {
  try {
    readConfiguration({ environment, flags });
    return [];
  } catch (reason) {
    if (reason instanceof ConfigurationError) return reason.problems;
    throw reason;
  }
}
