import { credentials } from "@grpc/grpc-js";
import { expect, test } from "vitest";
import {
  createPlantClient,
  type DeleteOutcome,
  type PlantClient,
  PlantClientError,
} from "../../../../src/client/index.ts";
import { openSqliteStore } from "../../../../src/stores/index.ts";
import { type LossyProxy, startLossyProxy } from "../../../../protoport/testing/src/http/lossy-proxy.ts";
import { deleteWithRetries } from "../../../support/clients/delete-with-retries.ts";
import { createTempFolder } from "@protoport/testing/process";
import { startPlantServer, tokens } from "../../../support/server/plant-server.ts";

/** Bytes between two cuts. test/suites/crash/lost-replies.test.ts cuts at every byte. */
const stepBytes = 5;

/** Opens a client for a server with plants 1 to 999, through a proxy that cuts responses. */
async function openLossy(opened: AsyncDisposableStack): Promise<{ proxy: LossyProxy; plants: PlantClient }> {
  const folder = opened.use(createTempFolder());
  const store = await openSqliteStore({ file: folder.file("plants.db"), plantsWhenCreated: { first: 1n, last: 999n } });
  const server = opened.use(await startPlantServer({ store }));
  const proxy = opened.use(await startLossyProxy(server.address));
  const plants = createPlantClient({
    address: proxy.target,
    token: tokens.good,
    credentials: credentials.createInsecure(),
  });
  opened.defer(() => plants.close());
  return { proxy, plants };
}

test("a retry reports the plant as deleted after any cut response", async () => {
  await using opened = new AsyncDisposableStack();
  const { proxy, plants } = await openLossy(opened);
  const outcomes: DeleteOutcome[] = [];
  while (proxy.cuts === outcomes.length) {
    // This call opens the connection, so that the cut is in the next call's response.
    await expect(plants.delete(1_000n)).resolves.toBe("not-found");
    proxy.cutAfter(outcomes.length * stepBytes);
    outcomes.push(await deleteWithRetries(plants, BigInt(outcomes.length + 1)));
  }
  expect(new Set(outcomes)).toEqual(new Set(["deleted"]));
  // The header and a response's trailer have some hundred bytes.
  expect(outcomes.length * stepBytes).toBeGreaterThan(100);
});

test("a client without keys never reports its own deletion as not found", async () => {
  await using opened = new AsyncDisposableStack();
  const { proxy, plants } = await openLossy(opened);
  const outcomes: string[] = [];
  while (proxy.cuts === outcomes.length) {
    // This call opens the connection again, so that the cut is in the next call's response.
    await expect(plants.delete(1_000n, { idempotencyKey: null })).resolves.toBe("not-found");
    proxy.cutAfter(outcomes.length * stepBytes);
    const outcome = plants.delete(BigInt(outcomes.length + 1), { idempotencyKey: null });
    outcomes.push(await outcome.catch((error) => (error instanceof PlantClientError ? error.code : String(error))));
  }
  // The last call's response was not cut.
  expect(outcomes.pop()).toBe("deleted");
  expect(new Set(outcomes)).toEqual(new Set(["UNAVAILABLE"]));
  expect(outcomes.length * stepBytes).toBeGreaterThan(100);
});
