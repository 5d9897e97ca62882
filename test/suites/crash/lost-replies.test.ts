import { credentials } from "@grpc/grpc-js";
import { describe, expect, test } from "vitest";
import { shared } from "../../../protoport/testing/src/shared.ts";
// oxfmt-ignore
import { createPlantClient, type DeleteOutcome, type PlantClient, PlantClientError
} from "../../../src/client/index.ts";
// oxfmt-ignore
import { migratePlants, openPlantDatabase, openPlantStore, openSqliteStore, type PlantLocation
} from "../../../src/stores/index.ts";
import { startLossyProxy } from "../../../protoport/testing/src/http/lossy-proxy.ts";
import { collect, createTempFolder, Dice, testSeed } from "@protoport/testing/process";
import { startPostgres } from "../../support/plants/postgres-server.ts";
import { startPlantServer, tokens } from "../../support/server/plant-server.ts";

/** How many responses are lost on each store. */
const lostReplies = Number(process.env["LOST_REPLIES"] ?? 2_000);
/** Connections that are cut repeatedly, and how many calls are in flight on each, as many as the server accepts. */
const connections = 16;
const concurrentCalls = 256;
/** Maximum number of bytes on a connection between two cuts, enough for the responses to the calls in flight. */
const maxBytes = 4_096;
/** The limit for connections with one call at a time. */
const maxUnkeyedBytes = 512;
/** Plants per round, after which the tables are checked. Each has some ten calls. */
const plantsOfRound = BigInt(Math.min(20_000, Math.max(2_000, Math.ceil(lostReplies / 10))));
/** Calls without an idempotency key, each for a different plant. */
const unkeyedCalls = 2_500;

const postgres = shared(() => startPostgres());

describe.each(["sqlite", "postgres"] as const)("a store on %s over breaking connections", (kind) => {
  const timeout = 120_000 + lostReplies * 5;
  test(`never reports a deleted plant as not found, despite ${lostReplies} lost responses`, { timeout }, async () => {
    using folder = createTempFolder();
    const location: PlantLocation =
      kind === "sqlite" ? { kind, path: folder.file("plants.db") } : { kind, url: await postgres.createSchema() };
    await migratePlants(location);
    const store = await openPlantStore(location);
    await using database = await openPlantDatabase(location);
    // Counts the server's responses. One response per plant arrives.
    let answers = 0;
    const counting = {
      ...store,
      problem: undefined,
      delete: async (...args: Parameters<typeof store.delete>) => {
        const isDeleted = await store.delete(...args);
        if (isDeleted) answers++;
        return isDeleted;
      },
      close: () => store.close(),
    };
    await using server = await startPlantServer({ store: counting });
    const dice = new Dice(testSeed);
    let plants = 0n;
    while (answers - Number(plants) < lostReplies) {
      const ids = Array.from({ length: Number(plantsOfRound) }, (_, i) => plants + BigInt(i));
      await using running = await database.startImport();
      await running.add(ids);
      const outcomes = new Map<DeleteOutcome, number>();
      await Promise.all(
        Array.from({ length: connections }, async (_, at) => {
          await using proxy = await startLossyProxy(server.address);
          const secured = { token: tokens.good, credentials: credentials.createInsecure() };
          const client = createPlantClient({ address: proxy.target, ...secured, timeoutMs: 60_000 });
          const left = ids.filter((_id, i) => i % connections === at).values();
          const callOneAfterAnother = async (): Promise<void> => {
            for (const id of left) {
              if (!proxy.isArmed) proxy.cutAfter(dice.roll(maxBytes));
              const outcome = await deleteWithRetries(client, id);
              outcomes.set(outcome, (outcomes.get(outcome) ?? 0) + 1);
            }
          };
          await Promise.all(Array.from({ length: concurrentCalls }, callOneAfterAnother));
          client.close();
        }),
      );
      plants += plantsOfRound;
      expect([...outcomes]).toEqual([["deleted", Number(plantsOfRound)]]);
      expect(await collect(database.exportPlants())).toEqual([]);
    }
    let records = 0;
    for await (const chunk of database.listDeletions()) records += chunk.length;
    expect(records).toBe(Number(plants));
  });
});

test(
  `${unkeyedCalls} retried calls without keys report no deleted plant as not found`,
  { timeout: 120_000 },
  async () => {
    using folder = createTempFolder();
    const plantsWhenCreated = { first: 1n, last: BigInt(unkeyedCalls) };
    const store = await openSqliteStore({ file: folder.file("plants.db"), plantsWhenCreated });
    await using server = await startPlantServer({ store });
    const dice = new Dice(testSeed);
    const outcomes = new Map<string, number>();
    const ids = Array.from({ length: unkeyedCalls }, (_, i) => BigInt(i + 1)).values();
    await Promise.all(
      Array.from({ length: connections }, async () => {
        await using proxy = await startLossyProxy(server.address);
        const secured = { token: tokens.good, credentials: credentials.createInsecure() };
        const client = createPlantClient({ address: proxy.target, ...secured, timeoutMs: 60_000 });
        for (const id of ids) {
          if (!proxy.isArmed) proxy.cutAfter(dice.roll(maxUnkeyedBytes));
          const outcome = await client
            .delete(id, { idempotencyKey: null })
            .catch((error) => (error instanceof PlantClientError ? error.code : String(error)));
          outcomes.set(outcome, (outcomes.get(outcome) ?? 0) + 1);
        }
        client.close();
      }),
    );
    expect([...outcomes.keys()].toSorted()).toEqual(["UNAVAILABLE", "deleted"]);
    expect(outcomes.get("UNAVAILABLE")).toBeGreaterThan(unkeyedCalls / 20);
  },
);

/** Deletes a plant, and retries the call with its idempotency key until it gets a response. */
async function deleteWithRetries(plants: PlantClient, id: bigint): Promise<DeleteOutcome> {
  for (;;) {
    try {
      return await plants.delete(id, { idempotencyKey: `key-${String(id)}` });
    } catch (error) {
      if (!(error instanceof PlantClientError) || !["UNAVAILABLE", "RESOURCE_EXHAUSTED"].includes(error.code))
        throw error;
    }
  }
}
