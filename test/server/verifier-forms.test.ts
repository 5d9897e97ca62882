import { describe, expect, test } from "vitest";
import type { PresentedToken, TokenOutcome, TokenVerifier } from "../../packages/auth/src/token-verifier.ts";
import { openMemoryStore } from "../../src/stores/index.ts";
import type { Field } from "../../packages/testing/src/carriers/exchange.ts";
import { type Carriage, carriages, exchange } from "../../packages/testing/src/gateway/wire-format.ts";
import { deletePlantRequest } from "../support/plants/delete-plant.ts";
import { openLogLines } from "../../packages/testing/src/operations/log-lines.ts";
import { bearer, startPlantServer, testVerifier, tokens } from "../support/server/plant-server.ts";

// A verifier returns an outcome or a promise of one, and a defective verifier throws or rejects. The response and the log
// lines must be the same for all of them.

const verify = (token: PresentedToken): TokenOutcome => {
  const outcome = testVerifier.verify(token);
  if (outcome instanceof Promise) throw new TypeError("the verifier of the tests is synchronous");
  if (token.text === defective) throw new Error("no table of tokens");
  return outcome;
};
const defective = "defective-token-0123456789";

const synchronous: TokenVerifier = { verify };
const asynchronous: Readonly<Record<string, TokenVerifier>> = {
  "by a promise": { verify: async (token) => verify(token) },
  "by a promise that settles in a later turn": {
    verify: (token) => new Promise(setImmediate).then(() => verify(token)),
  },
  "by another library's promise": {
    verify: (token) => {
      const thenable: PromiseLike<TokenOutcome> = {
        // oxlint-disable-next-line unicorn/no-thenable
        then: (resolve, reject) => Promise.resolve(token).then(verify).then(resolve, reject),
      };
      return Object.assign(Object.create(null), thenable);
    },
  },
};

const failing = [bearer(defective)];
const credentials: Readonly<Record<string, readonly Field[]>> = {
  "a valid token": [bearer(tokens.good)],
  "a token without the scope": [bearer(tokens.narrow)],
  "an expired token": [bearer(tokens.expired)],
  "a token that cannot be checked": [bearer(tokens.uncheckable)],
  "an unknown token": [bearer(tokens.unknown)],
  "a token for which the verifier throws": failing,
  "a malformed credential": [bearer("two tokens")],
  "no credential": [],
};

/** Returns the response and log lines of a call, without values that differ between calls. */
async function outcomeOf(carriage: Carriage, verifier: TokenVerifier, credential: readonly Field[]): Promise<unknown> {
  const { log, lines } = openLogLines("info");
  const plants = new Set([7n]);
  await using server = await startPlantServer({
    store: openMemoryStore(plants),
    verifier,
    log,
    ratePerPrincipal: 1_000,
  });
  const header: readonly Field[] = [...credential, ["x-request-id", "same"]];
  const request = deletePlantRequest(carriage.format, 7n, header);
  const { httpStatus, header: returned, trailer, body } = await exchange(server.address, carriage.httpVersion, request);
  await new Promise(setImmediate);
  return {
    httpStatus,
    header: returned.filter(([name]) => name !== "date"),
    trailer,
    body: String(body),
    plants: [...plants],
    lines: lines().map(({ err, ...line }) => ({ ...line, time: "", durationMs: 0, hasError: err !== undefined })),
  };
}

describe.each(carriages)("$name", (carriage) => {
  describe.each(Object.entries(credentials))("%s", (_, credential) => {
    test.each(Object.entries(asynchronous))("has the same outcome when verified %s", async (_how, verifier) => {
      const want = await outcomeOf(carriage, synchronous, credential);
      expect(await outcomeOf(carriage, verifier, credential)).toEqual(want);
      expect(want).toHaveProperty("lines.length", credential === failing ? 2 : 1);
    });
  });
});
