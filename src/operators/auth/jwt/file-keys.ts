import type { AuthLog } from "../auth-log.ts";
import { providerAnswerLimitBytes } from "../fetch-text.ts";
import { parsed, type ParseResult } from "../parse-result.ts";
import { watchFile } from "../watched-file.ts";
import type { IssuerKeys } from "./issuer-keys.ts";
import { readKeySet, type KeySet } from "./key-set.ts";
import type { JwtAlgorithm } from "./jwt-algorithm.ts";

/** Opens a key set in a file and watches it; returns the problem when the file is bad at the start. */
export async function openFileKeys(
  path: string,
  algorithms: readonly JwtAlgorithm[],
  log: AuthLog,
): Promise<ParseResult<IssuerKeys>> {
  let set: KeySet | undefined;
  const file = await watchFile({
    paths: [path],
    what: "key set",
    limitBytes: providerAnswerLimitBytes,
    log,
    async take(text) {
      const keys = await readKeySet(text, algorithms);
      if (keys.kind === "problems") return keys;
      set = keys.value;
      return parsed({ keys: keys.value.size });
    },
  });
  if (file.kind === "problems") return file;
  return parsed({
    current: () => set,
    // The file is watched anyway: a key that it does not contain does not exist.
    renew: () => Promise.resolve(),
    fetchedAtMs: undefined,
    retryAfterS: undefined,
    problem: undefined,
    reload: () => file.value.reload(),
    close: () => file.value.close(),
  });
}
