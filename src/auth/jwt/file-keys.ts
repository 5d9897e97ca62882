import type { AuthLog } from "../auth-log.ts";
import { providerAnswerLimitBytes } from "../fetch-text.ts";
import { parsed, type Parsed } from "../parsed.ts";
import { watchFile } from "../watched-file.ts";
import type { IssuerKeys } from "./issuer-keys.ts";
import { readKeySet, type KeySet } from "./key-set.ts";
import type { JwtAlgorithm } from "./jwt-algorithm.ts";

/** Opens keys that lie in a file and follows the file; a file that is bad at the start is the problem returned. */
export async function openFileKeys(
  path: string,
  algorithms: readonly JwtAlgorithm[],
  log: AuthLog,
): Promise<Parsed<IssuerKeys>> {
  let set: KeySet | undefined;
  const file = await watchFile({
    path,
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
    // The file is followed anyway: what it does not hold is not there.
    renew: () => Promise.resolve(),
    behindS: undefined,
    problem: undefined,
    reload: () => file.value.reload(),
    close: () => file.value.close(),
  });
}
