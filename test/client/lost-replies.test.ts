import { credentials } from "@grpc/grpc-js";
import { expect, test } from "vitest";
import { createPlants, type DeleteOutcome, PlantsError } from "../../src/client/index.ts";
import { openSqliteStore } from "../../src/stores/index.ts";
import { startLossyProxy } from "../../packages/testing/src/carriers/lossy-proxy.ts";
import { deleteUntilAnswered } from "../support/clients/delete-until-answered.ts";
import { createTempFolder } from "../../packages/testing/src/process/temp-folder.ts";
import { startPlantServer, tokens } from "../support/server/plant-server.ts";

/** Bytes from one cut to the next: test/suites/crash/lost-replies.test.ts cuts at every byte. */
const stepBytes = 5;

test("wherever an answer is cut, the next attempt is told that the plant is deleted", async () => {
  using folder = createTempFolder();
  const store = await openSqliteStore({ file: folder.file("plants.db"), plantsWhenCreated: { first: 1n, last: 999n } });
  await using server = await startPlantServer({ store });
  await using proxy = await startLossyProxy(server.address);
  const plants = createPlants({ address: proxy.target, token: tokens.good, credentials: credentials.createInsecure() });
  const outcomes: DeleteOutcome[] = [];
  while (proxy.cuts === outcomes.length) {
    // The connection is there, so that it is the answer that is cut.
    await expect(plants.delete(1_000n)).resolves.toBe("not-found");
    proxy.cutAfter(outcomes.length * stepBytes);
    outcomes.push(await deleteUntilAnswered(plants, BigInt(outcomes.length + 1)));
  }
  plants.close();
  expect(new Set(outcomes)).toEqual(new Set(["deleted"]));
  // The header and the trailer have some hundred bytes.
  expect(outcomes.length * stepBytes).toBeGreaterThan(100);
});

test("without an idempotency key, wherever a response is cut, the client does not report its own deletion as not found", async () => {
  using folder = createTempFolder();
  const store = await openSqliteStore({ file: folder.file("plants.db"), plantsWhenCreated: { first: 1n, last: 999n } });
  await using server = await startPlantServer({ store });
  await using proxy = await startLossyProxy(server.address);
  const plants = createPlants({ address: proxy.target, token: tokens.good, credentials: credentials.createInsecure() });
  const outcomes: string[] = [];
  while (proxy.cuts === outcomes.length) {
    // This opens the connection again, so that the response of the next call is cut.
    await expect(plants.delete(1_000n, { idempotencyKey: null })).resolves.toBe("not-found");
    proxy.cutAfter(outcomes.length * stepBytes);
    const outcome = plants.delete(BigInt(outcomes.length + 1), { idempotencyKey: null });
    outcomes.push(await outcome.catch((error) => (error instanceof PlantsError ? error.code : String(error))));
  }
  plants.close();
  // The response of the last call was not cut.
  expect(outcomes.pop()).toBe("deleted");
  expect(new Set(outcomes)).toEqual(new Set(["UNAVAILABLE"]));
  expect(outcomes.length * stepBytes).toBeGreaterThan(100);
});
