import { describe, expect, test } from "vitest";
import { openSqliteStore } from "../../../src/stores/index.ts";
import { startChildServer } from "../../support/process/child-server.ts";
import { DeleteTally, startDeleteLoad } from "../../support/plants/delete-load.ts";
import { plantsIn, readSqlite } from "../../support/plants/sqlite-file.ts";
import { createTempFolder, Dice, testSeed } from "@protoport/testing/process";

/** The number of kills. The nightly run uses 30. */
const kills = Number(process.env["CRASHES"] ?? 8);
const plants = 200_000n;

describe("a server on SQLite that is killed under load", () => {
  test("keeps every acknowledged deletion, and every other plant", { timeout: 300_000 }, async () => {
    using folder = createTempFolder();
    const file = folder.file("plants.db");
    await (await openSqliteStore({ file, plantsWhenCreated: { first: 1n, last: plants } })).close();
    const tally = new DeleteTally();
    const dice = new Dice(testSeed);
    for (let kill = 0; kill < kills; kill++) {
      await using server = await startChildServer(file);
      const load = startDeleteLoad(server.address, tally);
      await load.acknowledged(1 + dice.roll(500));
      await server.stop("SIGKILL");
      await load.stop();
    }
    const left = new Set(plantsIn(file));
    expect(tally.deleted.size).toBeGreaterThanOrEqual(kills);
    expect([...tally.deleted].filter((id) => left.has(id))).toEqual([]);
    expect([...tally.notFound]).toEqual([]);
    expect(unasked(tally).filter((id) => !left.has(id))).toEqual([]);
    // Each plant was deleted once, in one commit with its record.
    const gone = Number(plants) - left.size;
    const [counts] = readSqlite(file, "SELECT count(*) AS records, count(DISTINCT plant_id) AS plants FROM deletions");
    const want = { records: gone, plants: gone };
    expect({ records: Number(counts?.["records"]), plants: Number(counts?.["plants"]) }).toEqual(want);
  });
});

function unasked(tally: DeleteTally): bigint[] {
  return Array.from({ length: Number(plants) }, (_, i) => BigInt(i + 1)).filter((id) => !tally.asked.has(id));
}
