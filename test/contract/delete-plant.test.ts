import { describe, expect, test } from "vitest";
import { errorCodeOf } from "@protoport/gateway";
import { PlantService } from "../../src/gen/es/plantstore/v1/plant_service_pb.ts";
import { createPlantTools } from "../../src/server/plant-tools.ts";
import { policyOf, type RpcEffect } from "../../src/service/rpc-policy.ts";
import { askPlantServer } from "../support/server/ask-plant-server.ts";
import { openSituationStore, secretText } from "../support/plants/situation-store.ts";
import { type Wire, wiresWithTools } from "@protoport/testing";
import { expectedResponse, actualResponse, type Want } from "./expected-response.ts";
import { situations, type Situation } from "./situations.ts";

interface TestCase {
  readonly rpc: string;
  readonly wire: Wire;
  readonly situation: Situation;
  /** An existing plant that no other test case uses. */
  readonly plant: bigint;
}

const testCases: readonly TestCase[] = Object.entries(situations)
  .flatMap(([rpc, table]) => table.map((situation) => ({ rpc, situation })))
  .flatMap(({ rpc, situation }) =>
    wiresWithTools
      .filter(({ format }) => situation.formats?.includes(format.name) ?? true)
      .map((wire) => ({ rpc, situation, wire })),
  )
  .map((testCase, index) => ({ ...testCase, plant: BigInt(index + 1) }));

type Outcomes = Readonly<Record<string, Partial<Want>>>;

/** The outcomes for which every RPC must have a situation, by code or identifier. */
// oxfmt-ignore
const outcomesOfEveryRpc: Outcomes = {
  done: { code: "ok" }, absent: { code: "not_found" }, "no token": { errorCode: "ERR_CREDENTIAL_MISSING" },
  "wrong token": { errorCode: "ERR_TOKEN_INVALID" }, "missing scope": { errorCode: "ERR_SCOPE_INSUFFICIENT" },
  "store down": { errorCode: "ERR_STORE_UNAVAILABLE" }, "deadline passed": { errorCode: "ERR_DEADLINE_EXCEEDED" },
  "handler failed": { errorCode: "ERR_HANDLER_FAILED" },
};
const outcomesByEffect: Readonly<Record<RpcEffect, Outcomes>> = {
  deletion: {
    "queue full": { errorCode: "ERR_QUEUE_FULL" },
    "key of another deletion": { errorCode: "ERR_IDEMPOTENCY_KEY_REUSED" },
    "malformed key": { errorCode: "ERR_IDEMPOTENCY_KEY_INVALID" },
  },
  read: {},
};
const requiredSituations = PlantService.methods.flatMap(({ localName, name, parent }) => {
  const effect = policyOf(`/${parent.typeName}/${name}`)?.effect;
  const outcomes = { ...outcomesOfEveryRpc, ...(effect && outcomesByEffect[effect]) };
  const table = new Map(Object.entries(situations)).get(localName) ?? [];
  return Object.entries(outcomes).map(([outcome, want]) => ({ rpc: localName, table, outcome, want }));
});

test.each(requiredSituations)("the outcome $outcome for $rpc has a test case", ({ table, want }) => {
  expect(table.map((situation) => situation.want)).toContainEqual(expect.objectContaining(want));
});

test.each(Object.entries(situations))("the success of %s has a test case in every protocol", (_, table) => {
  expect(table.filter(({ formats, want }) => formats === undefined && want.code === "ok")).not.toEqual([]);
});

describe("the server", () => {
  const plants = new Set(testCases.map(({ plant }) => plant));
  const errorCodes: (string | undefined)[] = [];
  const ask = askPlantServer({
    store: openSituationStore(plants),
    tools: createPlantTools(),
    onResponse: ({ error }) => void errorCodes.push(error && errorCodeOf(error)),
  });

  test.each(testCases)("$situation.name over $wire.name", async ({ rpc, wire, situation, plant }) => {
    const { format, httpVersion } = wire;
    const before = errorCodes.length;
    const response = await ask(httpVersion, situation.request(format, plant));
    expect(actualResponse(format, response)).toStrictEqual(expectedResponse(format, situation.want));
    expect(JSON.stringify([response.header, response.body.toString("latin1")])).not.toContain(secretText);
    await expect.poll(() => errorCodes.slice(before)).toEqual([situation.want.errorCode]);
    // Neither a refused call nor any other RPC deletes the plant.
    expect(plants.has(plant)).toBe(rpc !== "deletePlant" || situation.want.code !== "ok");
  });
});
