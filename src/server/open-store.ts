import { openMemoryStore, openSqliteStore, type PlantStore } from "../plants/index.ts";
import type { Database } from "./database-url.ts";

/** Ids from first to last, both included. */
export interface IdRange {
  readonly first: bigint;
  readonly last: bigint;
}

/**
 * Opens the store of a `DATABASE_URL` for a server.
 *
 * @param plantsWhenCreated - the plants of a store that this call creates; one that was there is never
 * filled, also when it has become empty
 * @throws StoreOpenError naming the store and what is wrong with it
 */
export async function openStore(database: Database, plantsWhenCreated?: IdRange): Promise<PlantStore> {
  switch (database.kind) {
    case "memory":
      return openMemoryStore(new Set(plantsWhenCreated && idsOf(plantsWhenCreated)));
    case "sqlite":
      return await openSqliteStore({ file: database.path, ...(plantsWhenCreated && { plantsWhenCreated }) });
  }
}

function* idsOf({ first, last }: IdRange): Iterable<bigint> {
  for (let id = first; id <= last; id += 1n) yield id;
}
