import { describe, expect, test } from "vitest";
import type { PresentedToken, TokenOutcome, TokenVerifier } from "../../packages/auth/src/token-verifier.ts";
import { openMemoryStore } from "../../src/stores/index.ts";
import type { Field } from "../../packages/testing/src/carriers/exchange.ts";
import { type Carriage, carriages, exchange } from "../../packages/testing/src/gateway/wire-format.ts";
import { deletePlantRequest } from "../support/plants/delete-plant.ts";
import { openLogLines } from "../../packages/testing/src/operations/log-lines.ts";
import { bearer, startPlantServer, testVerifier, tokens } from "../support/server/plant-server.ts";

// A verifier returns an outcome or a promise of it, and one with a defect throws or rejects. Whichever it is, the client
// gets the same response, and the operator the same lines.

const verify = (token: PresentedToken): TokenOutcome => {
  const outcome = testVerifier.verify(token);
  if (outcome instanceof Promise) throw new TypeError("the verifier of the tests is synchronous");
  if (token.text === defective) throw new Error("no table of tokens");
  return outcome;
};
const defective = "defective-token-0123456789";

const synchronous: TokenVerifier = { verify };
const later: Readonly<Record<string, TokenVerifier>> = {
  "by a promise": { verify: async (token) => verify(token) },
  "by a promise that settles after the turn": {
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

const faulty = [bearer(defective)];
const credentials: Readonly<Record<string, readonly Field[]>> = {
  "a good token": [bearer(tokens.good)],
  "a token without the scope": [bearer(tokens.narrow)],
  "an expired token": [bearer(tokens.expired)],
  "a token that cannot be checked": [bearer(tokens.uncheckable)],
  "an unknown token": [bearer(tokens.unknown)],
  "a token on which the verifier fails": faulty,
  "a malformed credential": [bearer("two tokens")],
  "no credential": [],
};

/** What a call comes to: its response, and the lines of the log, without what differs by chance. */
async function outcomeOf(carriage: Carriage, auth: TokenVerifier, credential: readonly Field[]): Promise<unknown> {
  const { log, lines } = openLogLines("info");
  const plants = new Set([7n]);
  await using server = await startPlantServer({ store: openMemoryStore(plants), auth, log, ratePerPrincipal: 1_000 });
  const header: readonly Field[] = [...credential, ["x-request-id", "same"]];
  const request = deletePlantRequest(carriage.format, 7n, header);
  const { httpStatus, header: answered, trailer, body } = await exchange(server.address, carriage.httpVersion, request);
  await new Promise(setImmediate);
  return {
    httpStatus,
    header: answered.filter(([name]) => name !== "date"),
    trailer,
    body: String(body),
    plants: [...plants],
    lines: lines().map(({ err, ...line }) => ({ ...line, time: "", durationMs: 0, hasError: err !== undefined })),
  };
}

describe.each(carriages)("$name", (carriage) => {
  describe.each(Object.entries(credentials))("%s", (_, credential) => {
    test.each(Object.entries(later))("comes to the same where it is verified %s", async (_how, auth) => {
      const want = await outcomeOf(carriage, synchronous, credential);
      expect(await outcomeOf(carriage, auth, credential)).toEqual(want);
      expect(want).toHaveProperty("lines.length", credential === faulty ? 2 : 1);
    });
  });
});
