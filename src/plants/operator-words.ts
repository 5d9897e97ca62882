import { StoreOpenError } from "./errors.ts";
import type { PlantDatabase, PlantImport } from "./plant-database.ts";

/**
 * A database whose every fault is a {@link StoreOpenError} that names it.
 *
 * @param name - the file or server
 * @param wordsOf - what a fault of the driver means, as a clause
 */
export function inOperatorWords(
  name: string,
  wordsOf: (fault: unknown) => string,
  database: PlantDatabase,
): PlantDatabase {
  const fail = (fault: unknown): never => {
    throw fault instanceof StoreOpenError
      ? fault
      : new StoreOpenError(`cannot work with ${name}: ${wordsOf(fault)}`, { cause: fault });
  };
  return {
    startImport: (options) =>
      database.startImport(options).then(
        (running): PlantImport => ({
          add: (ids) => running.add(ids).catch(fail),
          [Symbol.asyncDispose]: () => running[Symbol.asyncDispose](),
        }),
        fail,
      ),
    exportPlants: () => failingWith(fail, database.exportPlants()),
    listDeletions: (since) => failingWith(fail, database.listDeletions(since)),
    [Symbol.asyncDispose]: () => database[Symbol.asyncDispose](),
  };
}

async function* failingWith<Item>(fail: (fault: unknown) => never, items: AsyncIterable<Item>): AsyncGenerator<Item> {
  // A fault of whoever reads the items does not come through here.
  const iterator = items[Symbol.asyncIterator]();
  try {
    for (;;) {
      const step = await iterator.next().catch(fail);
      if (step.done === true) return;
      yield step.value;
    }
  } finally {
    await iterator.return?.();
  }
}
