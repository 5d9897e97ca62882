import { ConfigurationError, readConfiguration } from "../../../src/server/index.ts";

type Texts = Readonly<Record<string, string>>;

/** Returns the problems of a configuration. Empty if it is valid. */
export function problemsOf(environment: Texts, flags: Texts = {}): readonly string[] {
  try {
    readConfiguration({ environment, flags });
    return [];
  } catch (reason) {
    if (reason instanceof ConfigurationError) return reason.problems;
    throw reason;
  }
}
