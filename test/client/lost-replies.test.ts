import { credentials } from "@grpc/grpc-js";
import { expect, test } from "vitest";
import { createPlantClient, type DeleteOutcome, PlantClientError } from "../../src/client/index.ts";
import { openSqliteStore } from "../../src/stores/index.ts";
import { startLossyProxy } from "../../packages/testing/src/carriers/lossy-proxy.ts";
import { deleteWithRetries } from "../support/clients/delete-with-retries.ts";
import { createTempFolder } from "../../packages/testing/src/process/temp-folder.ts";
import { startPlantServer, tokens } from "../support/server/plant-server.ts";

/** The number of bytes between two cuts. test/suites/crash/lost-replies.test.ts cuts at every byte. */
const stepBytes = 5;

test("a retry reports the plant as deleted, no matter where the first response was cut", async () => {
  using folder = createTempFolder();
  const store = await openSqliteStore({ file: folder.file("plants.db"), plantsWhenCreated: { first: 1n, last: 999n } });
  await using server = await startPlantServer({ store });
  await using proxy = await startLossyProxy(server.address);
  const plants = createPlantClient({
    address: proxy.target,
    token: tokens.good,
    credentials: credentials.createInsecure(),
  });
  const outcomes: DeleteOutcome[] = [];
  while (proxy.cuts === outcomes.length) {
    // This call opens the connection, so that the cut is in the response of the next call.
    await expect(plants.delete(1_000n)).resolves.toBe("not-found");
    proxy.cutAfter(outcomes.length * stepBytes);
    outcomes.push(await deleteWithRetries(plants, BigInt(outcomes.length + 1)));
  }
  plants.close();
  expect(new Set(outcomes)).toEqual(new Set(["deleted"]));
  // The header and the trailer of a response have some hundred bytes.
  expect(outcomes.length * stepBytes).toBeGreaterThan(100);
});

test("a client without an idempotency key never reports its own deletion as not found after a cut response", async () => {
  using folder = createTempFolder();
  const store = await openSqliteStore({ file: folder.file("plants.db"), plantsWhenCreated: { first: 1n, last: 999n } });
  await using server = await startPlantServer({ store });
  await using proxy = await startLossyProxy(server.address);
  const plants = createPlantClient({
    address: proxy.target,
    token: tokens.good,
    credentials: credentials.createInsecure(),
  });
  const outcomes: string[] = [];
  while (proxy.cuts === outcomes.length) {
    // This call opens the connection again, so that the cut is in the response of the next call.
    await expect(plants.delete(1_000n, { idempotencyKey: null })).resolves.toBe("not-found");
    proxy.cutAfter(outcomes.length * stepBytes);
    const outcome = plants.delete(BigInt(outcomes.length + 1), { idempotencyKey: null });
    outcomes.push(await outcome.catch((error) => (error instanceof PlantClientError ? error.code : String(error))));
  }
  plants.close();
  // The response of the last call was not cut.
  expect(outcomes.pop()).toBe("deleted");
  expect(new Set(outcomes)).toEqual(new Set(["UNAVAILABLE"]));
  expect(outcomes.length * stepBytes).toBeGreaterThan(100);
});
