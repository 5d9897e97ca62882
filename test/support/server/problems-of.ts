import { ConfigurationError, readConfiguration } from "../../../src/server/index.ts";

type Texts = Readonly<Record<string, string>>;

/** Returns what is wrong with a configuration; nothing if it can be used. */
export function problemsOf(environment: Texts, flags: Texts = {}): readonly string[] {
  try {
    readConfiguration({ environment, flags });
    return [];
  } catch (reason) {
    if (reason instanceof ConfigurationError) return reason.problems;
    throw reason;
  }
}
