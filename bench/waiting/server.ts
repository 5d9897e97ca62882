import { openTokenVerifier, toStaticToken } from "../../src/operators/auth/index.ts";
import { DeleteQueue } from "../../src/plantstore/plants/delete-queue.ts";
import { createPlantServer } from "../../src/plantstore/server/index.ts";
import { heldBytes } from "../../test/support/carriers/held-bytes.ts";
import { fakeStore } from "../../test/support/plants/fake-store.ts";
import { benchToken } from "../servers/plants.ts";

// The plant server with a store whose first commit never ends: every other deletion waits for it. Says where it
// listens, and what it holds whenever it is asked.

/** What this program tells its parent. */
export type Said =
  | { readonly kind: "listening"; readonly port: number }
  | { readonly kind: "held"; readonly bytes: number; readonly waiting: number };

/** More than any load here. */
const waitingMax = 1_000_000;

const noLog = { info: (): void => {}, warn: (): void => {} };
const verifier = await openTokenVerifier({ tokens: [toStaticToken("bench", benchToken)] }, noLog);
if (verifier.kind !== "value") throw new Error(verifier.problems.join("; "));
const commit = (): Promise<never> => new Promise(() => {});
const queue = new DeleteQueue({ commit, batchMax: 1, waitingMax, inFlightMax: 1 });
const store = fakeStore({ delete: (id, call) => queue.delete(id, call) });
const { port } = await createPlantServer({ auth: verifier.value, store }).listen({ host: "127.0.0.1", port: 0 });

process.on("message", () => void tell());
process.on("disconnect", () => process.exit(0));
say({ kind: "listening", port });

async function tell(): Promise<void> {
  say({ kind: "held", bytes: await heldBytes(), waiting: queue.waiting.forBatch });
}

function say(said: Said): void {
  process.send?.(said);
}
