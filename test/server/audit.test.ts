import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { openTokenVerifier, toStaticToken, type TokenVerifier } from "../../src/auth/index.ts";
import { openMemoryStore } from "../../src/plants/index.ts";
import type { HttpAnswer } from "../support/exchange.ts";
import {
  createSigningKey,
  type IdentityProvider,
  startIdentityProvider,
  testAudience,
} from "../support/identity-provider.ts";
import { type LogLines, openLogLines } from "../support/log-lines.ts";
import { bearer, startPlantServer } from "../support/plant-server.ts";
import { quietLog } from "../support/quiet-log.ts";
import { type Carriage, carriages, deletePlantRequest, exchange } from "../support/wire-format.ts";

const ciToken = "ci-token-0123456789";
// Beyond what a JSON number keeps.
const plant = 2n ** 53n + 1n;

let provider: IdentityProvider;
let verifier: TokenVerifier;

beforeAll(async () => {
  provider = await startIdentityProvider(await createSigningKey("ES256", "key"));
  const jwt = [{ issuer: provider.issuer, audiences: [testAudience], demandScopes: true }];
  const opened = await openTokenVerifier({ tokens: [toStaticToken("ci", ciToken)], jwt }, quietLog);
  if (opened.kind === "problems") throw new Error(opened.problems.join("; "));
  verifier = opened.value;
});

afterAll(() => {
  verifier.close?.();
  provider.stop();
});

interface Row {
  readonly name: string;
  readonly token: () => string | Promise<string>;
  /** The plants that are there; the one that is asked for unless something else is said. */
  readonly plants?: readonly bigint[];
  readonly want: () => object;
}

const rows: readonly Row[] = [
  {
    name: "a delete by a token of ours",
    token: () => ciToken,
    want: () => ({ code: "OK", subject: "ci", plantId: String(plant) }),
  },
  {
    name: "a delete by a token of a provider",
    token: () => provider.sign({ scope: "plants:delete" }),
    want: () => ({ code: "OK", subject: "ada", issuer: provider.issuer, plantId: String(plant) }),
  },
  {
    name: "a delete of a plant that is not there",
    token: () => ciToken,
    plants: [],
    want: () => ({ code: "NotFound", subject: "ci", plantId: String(plant) }),
  },
  {
    name: "a refusal for want of a scope",
    token: () => provider.sign(),
    want: () => ({
      code: "PermissionDenied",
      subject: "ada",
      issuer: provider.issuer,
      refusal: "insufficient-scope",
      reason: "the token lacks the scope plants:delete",
    }),
  },
  {
    name: "a refusal of a token for somebody else",
    token: () => provider.sign({ aud: "https://other.example" }),
    want: () => ({ code: "Unauthenticated", refusal: "invalid", reason: 'unexpected "aud" claim value' }),
  },
  {
    name: "a refusal of what is no token",
    token: () => "!",
    want: () => ({ code: "Unauthenticated", refusal: "malformed", reason: "not one bearer token" }),
  },
];

interface Call {
  readonly log: LogLines;
  readonly token: string;
  readonly answer: HttpAnswer;
}

async function call(row: Row, { format, httpVersion }: Carriage): Promise<Call> {
  const log = openLogLines("trace");
  const token = await row.token();
  const store = openMemoryStore(new Set(row.plants ?? [plant]));
  await using server = await startPlantServer({ auth: verifier, store, log: log.log });
  const answer = await exchange(server.address, httpVersion, deletePlantRequest(format, plant, [bearer(token)]));
  return { log, token, answer };
}

const audited = new Set(["subject", "issuer", "refusal", "reason", "plantId", "code"]);

describe("the audit line", () => {
  test.each(rows.flatMap((row) => carriages.map((carriage) => ({ row, carriage }))))(
    "of $row.name says all of it once, and not the token: $carriage.name",
    async ({ row, carriage }) => {
      const { log, token, answer } = await call(row, carriage);
      const calls = log.lines().filter(({ msg }) => msg === "call");
      expect(calls).toHaveLength(1);
      expect(Object.fromEntries(Object.entries(calls[0] ?? {}).filter(([name]) => audited.has(name)))).toEqual(
        row.want(),
      );
      expect(calls[0]).toMatchObject({
        time: expect.any(String),
        requestId: expect.any(String),
        peer: "127.0.0.1",
        httpStatus: answer.httpStatus,
      });
      if (token !== "!") expect(log.text()).not.toContain(token);
    },
  );
});
