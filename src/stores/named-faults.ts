import { StoreOpenError } from "./store-open-error.ts";
import type { PlantDatabase, PlantImport } from "./plant-database.ts";

/**
 * Wraps a database so that every fault becomes a {@link StoreOpenError} that names the file or server.
 *
 * @param name - the file or server
 * @param wordsOf - describes a fault of the driver, as a clause
 */
export function withNamedFaults(
  name: string,
  wordsOf: (fault: unknown) => string,
  database: PlantDatabase,
): PlantDatabase {
  const fail = (fault: unknown): never => {
    throw fault instanceof StoreOpenError
      ? fault
      : new StoreOpenError(`cannot use ${name}: ${wordsOf(fault)}`, { cause: fault });
  };
  return {
    startImport: (options) =>
      database.startImport(options).then(
        (running): PlantImport => ({
          batchMax: running.batchMax,
          add: (ids) => running.add(ids).catch(fail),
          [Symbol.asyncDispose]: () => running[Symbol.asyncDispose](),
        }),
        fail,
      ),
    exportPlants: () => failingWith(fail, database.exportPlants()),
    listDeletions: (filter) => failingWith(fail, database.listDeletions(filter)),
    [Symbol.asyncDispose]: () => database[Symbol.asyncDispose](),
  };
}

async function* failingWith<Item>(fail: (fault: unknown) => never, items: AsyncIterable<Item>): AsyncGenerator<Item> {
  try {
    // Errors of the code that reads the items do not pass through here: it ends them instead.
    yield* items;
  } catch (fault) {
    fail(fault);
  }
}
