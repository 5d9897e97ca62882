import { describe, expect, test } from "vitest";
import { errorCodeOf } from "../../src/gateway/index.ts";
import { askPlantServer } from "../support/server/ask-plant-server.ts";
import { openSituationStore, secretText } from "../support/plants/situation-store.ts";
import { carriages, type Carriage } from "../support/gateway/wire-format.ts";
import { expectedAnswer, seenAnswer } from "./expected-answer.ts";
import { situations, type Situation } from "./situations.ts";

interface Row {
  readonly carriage: Carriage;
  readonly situation: Situation;
  /** A plant that is there for this row alone. */
  readonly plant: bigint;
}

const rows: readonly Row[] = situations.deletePlant
  .flatMap((situation) =>
    carriages
      .filter(({ format }) => situation.formats?.includes(format.name) ?? true)
      .map((carriage) => ({ situation, carriage })),
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

  test.each(rows)("$situation.name, $carriage.name", async ({ carriage, situation, plant }) => {
    const { format, httpVersion } = carriage;
    const before = errorCodes.length;
    const answer = await ask(httpVersion, situation.request(format, plant));
    expect(seenAnswer(format, answer)).toStrictEqual(expectedAnswer(format, situation.want));
    expect(JSON.stringify([answer.header, answer.body.toString("latin1")])).not.toContain(secretText);
    await expect.poll(() => errorCodes.slice(before)).toEqual([situation.want.errorCode]);
    // A refusal deletes nothing.
    expect(plants.has(plant)).toBe(situation.want.code !== "ok");
  });
});
