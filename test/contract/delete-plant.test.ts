import { describe, expect, test } from "vitest";
import { errorCodeOf } from "../../packages/gateway/src/index.ts";
import { createPlantTools } from "../../src/server/plant-tools.ts";
import { askPlantServer } from "../support/server/ask-plant-server.ts";
import { openSituationStore, secretText } from "../support/plants/situation-store.ts";
import { carriagesWithTools, type Carriage } from "../../packages/testing/src/gateway/wire-format.ts";
import { expectedResponse, actualResponse, type Want } from "./expected-response.ts";
import { situations, type Situation } from "./situations.ts";

interface TestCase {
  readonly rpc: string;
  readonly carriage: Carriage;
  readonly situation: Situation;
  /** An existing plant that no other test case uses. */
  readonly plant: bigint;
}

const testCases: readonly TestCase[] = Object.entries(situations)
  .flatMap(([rpc, table]) => table.map((situation) => ({ rpc, situation })))
  .flatMap(({ rpc, situation }) =>
    carriagesWithTools
      .filter(({ format }) => situation.formats?.includes(format.name) ?? true)
      .map((carriage) => ({ rpc, situation, carriage })),
  )
  .map((testCase, index) => ({ ...testCase, plant: BigInt(index + 1) }));

/** The outcomes for which every RPC must have a situation, by their codes or identifiers. */
const outcomesOfEveryRpc: Readonly<Record<string, Partial<Want>>> = {
  done: { code: "ok" },
  absent: { code: "not_found" },
  "no token": { errorCode: "ERR_CREDENTIAL_MISSING" },
  "wrong token": { errorCode: "ERR_TOKEN_INVALID" },
  "missing scope": { errorCode: "ERR_SCOPE_INSUFFICIENT" },
  "store down": { errorCode: "ERR_STORE_UNAVAILABLE" },
  "queue full": { errorCode: "ERR_QUEUE_FULL" },
  "deadline passed": { errorCode: "ERR_DEADLINE_EXCEEDED" },
  "handler failed": { errorCode: "ERR_HANDLER_FAILED" },
};
const requiredSituations = Object.entries(situations).flatMap(([rpc, table]) =>
  Object.entries(outcomesOfEveryRpc).map(([outcome, want]) => ({ rpc, table, outcome, want })),
);

test.each(requiredSituations)("$rpc has a situation for the outcome: $outcome", ({ table, want }) => {
  expect(table.map((situation) => situation.want)).toContainEqual(expect.objectContaining(want));
});

test.each(Object.entries(situations))("%s has a successful situation in every protocol", (_, table) => {
  const everywhere = table.filter(({ formats, want }) => formats === undefined && want.code === "ok");
  expect(everywhere).not.toEqual([]);
});

describe("the server", () => {
  const plants = new Set(testCases.map(({ plant }) => plant));
  /** The identifiers of all responses, in order. */
  const errorCodes: (string | undefined)[] = [];
  const ask = askPlantServer({
    store: openSituationStore(plants),
    tools: createPlantTools(),
    onResponse: ({ error }) => void errorCodes.push(error && errorCodeOf(error)),
  });

  test.each(testCases)("$situation.name, $carriage.name", async ({ rpc, carriage, situation, plant }) => {
    const { format, httpVersion } = carriage;
    const before = errorCodes.length;
    const response = await ask(httpVersion, situation.request(format, plant));
    expect(actualResponse(format, response)).toStrictEqual(expectedResponse(format, situation.want));
    expect(JSON.stringify([response.header, response.body.toString("latin1")])).not.toContain(secretText);
    await expect.poll(() => errorCodes.slice(before)).toEqual([situation.want.errorCode]);
    // Neither a refused call nor any other RPC deletes the plant.
    expect(plants.has(plant)).toBe(rpc !== "deletePlant" || situation.want.code !== "ok");
  });
});
