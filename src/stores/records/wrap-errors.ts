import { StoreOpenError } from "../contract/store-open-error.ts";
import type { PlantDatabase, PlantImport } from "../contract/plant-database.ts";

/** Wraps a database. Every error becomes a {@link StoreOpenError} with the file or server, described by `describe`. */
export function wrapErrors(name: string, describe: (fault: unknown) => string, database: PlantDatabase): PlantDatabase {
  const fail = (fault: unknown): never => {
    throw fault instanceof StoreOpenError
      ? fault
      : new StoreOpenError(`cannot use ${name}: ${describe(fault)}`, { cause: fault });
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
    exportPlants: () => rethrowing(fail, database.exportPlants()),
    listDeletions: (filter) => rethrowing(fail, database.listDeletions(filter)),
    [Symbol.asyncDispose]: () => database[Symbol.asyncDispose](),
  };
}

/** Yields the items, and calls `fail` with an error of the source. */
export async function* rethrowing<Item>(
  fail: (fault: unknown) => never,
  items: AsyncIterable<Item> | Iterable<Item>,
): AsyncGenerator<Item> {
  try {
    // Errors in the consumer do not reach `catch`, because they only close the iterator.
    yield* items;
  } catch (fault) {
    fail(fault);
  }
}
