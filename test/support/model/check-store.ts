import { asyncModelRun, asyncProperty, assert } from "fast-check";
import { testSeed } from "../../../protoport/testing/src/test-seed.ts";
import { plants, storeCommands } from "./commands.ts";
import { PlantModel } from "./plant-model.ts";
import { type Database, type StartStore, StoreHost } from "./store-host.ts";

export interface ModelRun {
  readonly create: () => Promise<Database>;
  readonly startStore: StartStore;
  /** The number of sequences of commands. Fewer if they take longer than the limit of a property. */
  readonly sequences: number;
  readonly limitMs: number;
}

/** Runs random commands on a store and on the model, and fails if they differ. Returns the number of commands. */
export async function checkStore({ create, startStore, sequences, limitMs }: ModelRun): Promise<number> {
  let count = 0;
  await assert(
    asyncProperty(storeCommands, async (commands) => {
      await using database = await create();
      const host = new StoreHost(database, startStore);
      await host.start();
      try {
        await host.import(plants, false);
        await asyncModelRun(() => ({ model: new PlantModel(plants), real: host }), commands);
      } finally {
        await host.kill();
      }
      count += [...commands].length;
    }),
    { seed: testSeed, numRuns: sequences, timeout: limitMs, endOnFailure: true },
  );
  return count;
}
