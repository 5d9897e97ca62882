import { createLocalJWKSet, type JSONWebKeySet } from "jose";

import { type OperatorLog, withProblems, parsed, type ParseResult, watchFile } from "../inputs/index.ts";
import { providerResponseLimitBytes } from "../fetch-text.ts";
import type { IssuerKeys } from "./issuer-keys.ts";
import { readKeySet } from "./key-set.ts";
import type { JwtAlgorithm } from "./jwt-algorithm.ts";

/** Opens a key set in a file and watches the file. Returns the problems if the file's first content is invalid. */
export async function openFileKeys(
  path: string,
  algorithms: readonly JwtAlgorithm[],
  log: OperatorLog,
): Promise<ParseResult<IssuerKeys>> {
  let current: JSONWebKeySet = { keys: [] };
  let find = createLocalJWKSet(current);
  const use = (keys: JSONWebKeySet): ParseResult<{ readonly keys: number }> => {
    current = keys;
    find = createLocalJWKSet(keys);
    return parsed({ keys: keys.keys.length });
  };
  const file = await watchFile({
    paths: [path],
    what: "key set",
    limitBytes: providerResponseLimitBytes,
    log,
    async apply(text) {
      const keys = await readKeySet(text, algorithms);
      if (keys.kind === "problems") return keys;
      return keys.value.keys.length === 0 ? withProblems("the key set is empty") : use(keys.value);
    },
  });
  if (file.kind === "problems") return file;
  return parsed({
    find: (...signature) => find(...signature),
    get current() {
      return current;
    },
    fetchedAtMs: undefined,
    retryAfterS: undefined,
    problem: undefined,
    get fileReload() {
      return file.value.lastReload;
    },
    reload: () => file.value.reload(),
    close: () => file.value.close(),
  });
}
