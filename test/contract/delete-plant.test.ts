import { describe, expect, test } from "vitest";
import { errorCodeOf } from "../../src/gateway/index.ts";
import { askPlantServer } from "../support/server/ask-plant-server.ts";
import { openSituationStore, secretText } from "../support/plants/situation-store.ts";
import { carriages, type Carriage } from "../support/gateway/wire-format.ts";
import { expectedAnswer, seenAnswer } from "./expected-answer.ts";
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

/** What every RPC can come to, whatever it does. */
const codesOfEveryRpc = [
  "ok",
  "unauthenticated",
  "permission_denied",
  "deadline_exceeded",
  "resource_exhausted",
  "unavailable",
  "internal",
];

test.each(Object.entries(situations))("%s has a situation for each code that any RPC may end with", (_, table) => {
  expect(table.map(({ want }) => want.code)).toEqual(expect.arrayContaining(codesOfEveryRpc));
});

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
