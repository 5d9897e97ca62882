import { describe, expect, test } from "vitest";
import { errorCodeOf } from "../../packages/gateway/src/index.ts";
import { askPlantServer } from "../support/server/ask-plant-server.ts";
import { openSituationStore, secretText } from "../support/plants/situation-store.ts";
import { carriages, type Carriage } from "../../packages/testing/src/gateway/wire-format.ts";
import { expectedAnswer, seenAnswer, type Want } from "./expected-answer.ts";
import { situations, type Situation } from "./situations.ts";

interface Row {
  readonly rpc: string;
  readonly carriage: Carriage;
  readonly situation: Situation;
  /** A plant that is there for this row alone. */
  readonly plant: bigint;
}

const rows: readonly Row[] = Object.entries(situations)
  .flatMap(([rpc, table]) => table.map((situation) => ({ rpc, situation })))
  .flatMap(({ rpc, situation }) =>
    carriages
      .filter(({ format }) => situation.formats?.includes(format.name) ?? true)
      .map((carriage) => ({ rpc, situation, carriage })),
  )
  .map((row, index) => ({ ...row, plant: BigInt(index + 1) }));

/** What every RPC can come to, whatever it does: each by the codes or identifiers of which a situation must have one. */
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
const demanded = Object.entries(situations).flatMap(([rpc, table]) =>
  Object.entries(outcomesOfEveryRpc).map(([outcome, want]) => ({ rpc, table, outcome, want })),
);

test.each(demanded)("$rpc has a situation for the outcome: $outcome", ({ table, want }) => {
  expect(table.map((situation) => situation.want)).toContainEqual(expect.objectContaining(want));
});

test.each(Object.entries(situations))(
  "%s has a situation that is not excused from any protocol for success",
  (_, table) => {
    const everywhere = table.filter(({ formats, want }) => formats === undefined && want.code === "ok");
    expect(everywhere).not.toEqual([]);
  },
);

describe("the server", () => {
  const plants = new Set(rows.map(({ plant }) => plant));
  /** Of every answer, in order. */
  const errorCodes: (string | undefined)[] = [];
  const ask = askPlantServer({
    store: openSituationStore(plants),
    onAnswer: ({ error }) => void errorCodes.push(error && errorCodeOf(error)),
  });

  test.each(rows)("$situation.name, $carriage.name", async ({ rpc, carriage, situation, plant }) => {
    const { format, httpVersion } = carriage;
    const before = errorCodes.length;
    const answer = await ask(httpVersion, situation.request(format, plant));
    expect(seenAnswer(format, answer)).toStrictEqual(expectedAnswer(format, situation.want));
    expect(JSON.stringify([answer.header, answer.body.toString("latin1")])).not.toContain(secretText);
    await expect.poll(() => errorCodes.slice(before)).toEqual([situation.want.errorCode]);
    // A refusal deletes nothing, nor does any other RPC.
    expect(plants.has(plant)).toBe(rpc !== "deletePlant" || situation.want.code !== "ok");
  });
});
