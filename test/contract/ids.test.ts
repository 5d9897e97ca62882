import { describe, expect, test } from "vitest";
import { createPlantTools } from "../../src/server/plant-tools.ts";
import { openMemoryStore } from "../../src/stores/index.ts";
import { askPlantServer, authorized } from "../support/server/index.ts";
import { readOutcome, wiresWithTools } from "@protoport/testing";
import { deletePlantRequest } from "../support/plants/delete-plant.ts";

/** Ids that would change if they were converted to an inexact number. */
// oxfmt-ignore
const exactIds = [
  0n, -1n, 1n, 2n ** 53n - 1n, 2n ** 53n, 2n ** 53n + 1n, -(2n ** 53n) - 1n, 2n ** 63n - 1n, -(2n ** 63n),
];

const testCases = wiresWithTools.flatMap((wire) =>
  exactIds.map((id) => ({ wire, id, plant: String(id), name: wire.name })),
);

/** Returns the plant, and the plants that would be deleted if the id were misread. */
function withNeighbours(id: bigint): Set<bigint> {
  const candidates = [0n, id - 2n, id - 1n, id, id + 1n, id + 2n, -id, BigInt.asIntN(32, id)];
  return new Set(candidates.filter((candidate) => BigInt.asIntN(64, candidate) === candidate));
}

describe("a deletion", () => {
  const plants = new Set<bigint>();
  const ask = askPlantServer({ store: openMemoryStore(plants), tools: createPlantTools() });

  test.each(testCases)("over $name with the id $plant removes only that plant", async ({ wire, id }) => {
    const want = withNeighbours(id);
    plants.clear();
    want.forEach((each) => plants.add(each));
    want.delete(id);
    const { format, httpVersion } = wire;
    const request = deletePlantRequest(format, id, [authorized]);
    expect(readOutcome(format, await ask(httpVersion, request))).toStrictEqual({ code: 0, message: "" });
    expect(plants).toStrictEqual(want);
    const second = await ask(httpVersion, request);
    expect(readOutcome(format, second)).toStrictEqual({ code: 5, message: `plant ${String(id)} not found` });
    expect(plants).toStrictEqual(want);
  });
});
