import { afterAll, describe, expect, test } from "vitest";
import type { TokenVerifier } from "@protoport/auth";
import { createPlantTools } from "../../../../src/server/plant-tools.ts";
import { openMemoryStore } from "../../../../src/stores/index.ts";
import { exchange, type Field, openLogLines, type Wire, wiresWithTools } from "@protoport/testing";
import { deletePlantRequest } from "../../../support/plants/delete-plant.ts";
import { bearer, startPlantServer, testVerifier, tokens } from "../../../support/server/plant-server.ts";

// A verifier returns an outcome or a promise, and a defective verifier throws or rejects. The response and the
// log lines must be the same for all.

type TokenOutcome = Awaited<ReturnType<TokenVerifier["verify"]>>;

const verify = (token: Parameters<TokenVerifier["verify"]>[0]): TokenOutcome => {
  const outcome = testVerifier.verify(token);
  if (outcome instanceof Promise) throw new TypeError("the verifier of the tests is synchronous");
  if (token.text === defective) throw new Error("no table of tokens");
  return outcome;
};
const defective = "defective-token-0123456789";

const synchronous: TokenVerifier = { verify };
// oxfmt-ignore
const asynchronous: Readonly<Record<string, TokenVerifier>> = {
  "by a promise": { verify: async (token) => verify(token) },
  "by a promise that settles in a later turn": { verify: (token) => new Promise(setImmediate).then(() => verify(token)) },
  "by another library's promise": { verify: (token) => {
      const thenable: PromiseLike<TokenOutcome> = {
        // oxlint-disable-next-line unicorn/no-thenable
        then: (resolve, reject) => Promise.resolve(token).then(verify).then(resolve, reject),
      };
      return Object.assign(Object.create(null), thenable);
    } },
};

const failing = [bearer(defective)];
// oxfmt-ignore
const credentials: Readonly<Record<string, readonly Field[]>> = {
  "a valid token": [bearer(tokens.good)], "a token without the scope": [bearer(tokens.narrow)],
  "an expired token": [bearer(tokens.expired)], "a token that cannot be checked": [bearer(tokens.uncheckable)],
  "an unknown token": [bearer(tokens.unknown)], "a token for which the verifier throws": failing,
  "a malformed credential": [bearer("two tokens")], "no credential": [],
};

/** Makes a call to a verifier's server, and returns the response and log lines without values that differ by call. */
type Ask = (wire: Wire, credential: readonly Field[]) => Promise<unknown>;

/** Starts a server with a verifier, which is closed after all tests. */
async function serveWith(verifier: TokenVerifier): Promise<Ask> {
  const { log, lines } = openLogLines("info");
  const plants = new Set<bigint>();
  const server = await startPlantServer({
    store: openMemoryStore(plants),
    verifier,
    tools: createPlantTools(),
    log,
    ratePerPrincipal: 1_000,
  });
  afterAll(() => server[Symbol.asyncDispose]());
  return async ({ format, httpVersion }, credential) => {
    const earlier = lines().length;
    plants.add(7n);
    const header: readonly Field[] = [...credential, ["x-request-id", "same"]];
    const response = await exchange(server.address, httpVersion, deletePlantRequest(format, 7n, header));
    await new Promise(setImmediate);
    return {
      httpStatus: response.httpStatus,
      header: response.header.filter(([name]) => name !== "date"),
      trailer: response.trailer,
      body: String(response.body),
      plants: [...plants],
      lines: lines()
        .slice(earlier)
        .map(({ err, ...line }) => ({ ...line, time: "", durationMs: 0, hasError: err !== undefined })),
    };
  };
}

const askSynchronous = await serveWith(synchronous);
const askAsynchronous = await Promise.all(
  Object.entries(asynchronous).map(async ([name, verifier]) => [name, await serveWith(verifier)] as const),
);

describe.each(wiresWithTools)("a call over $name", (wire) => {
  test.each(Object.entries(credentials))(
    "with %s has the same outcome for a synchronous and an asynchronous verifier",
    async (_, credential) => {
      const want = await askSynchronous(wire, credential);
      expect(want).toHaveProperty("lines.length", credential === failing ? 2 : 1);
      for (const [name, ask] of askAsynchronous)
        expect.soft({ name, outcome: await ask(wire, credential) }).toEqual({ name, outcome: want });
    },
  );
});
