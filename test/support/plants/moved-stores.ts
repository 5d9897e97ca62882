import { expect } from "vitest";
// oxfmt-ignore
import { type MovableStore, movePlants, openMovableStore, openPlantDatabase, openPlantStore, type PlantLocation,
  reopenPlants, type StoreCounts } from "../../../src/stores/index.ts";
import { openDatabase } from "../../../src/stores/sqlite/database.ts";
import { collect } from "../../../protoport/testing/src/collect.ts";
import { prepareDeleteBatch } from "../../../src/stores/sqlite/delete-batch.ts";
import type { PlantStore } from "../../../src/service/plant-store.ts";
import { deleteCall } from "./delete-call.ts";
import { type PostgresServer, runSql } from "./postgres-server.ts";
import { runSqlite } from "./sqlite-file.ts";
import type { TempFolder } from "../../../protoport/testing/src/process/temp-folder.ts";

export interface Kind {
  readonly kind: "SQLite" | "PostgreSQL";
  readonly create: () => Promise<PlantLocation>;
  readonly run: (location: PlantLocation, sql: string) => Promise<void>;
}

export function pathOf(location: PlantLocation): string {
  if (location.kind !== "sqlite") throw new TypeError(`the store is in ${location.kind}`);
  return location.path;
}

export function urlOf(location: PlantLocation): string {
  if (location.kind !== "postgres") throw new TypeError(`the store is in ${location.kind}`);
  return location.url;
}

/** Returns SQLite stores in a folder. */
export function sqliteIn(folder: TempFolder): Kind {
  let files = 0;
  return {
    kind: "SQLite",
    create: async () => {
      const path = folder.file(`${++files}.db`);
      openDatabase({ file: path, migrates: true }).close();
      return { kind: "sqlite", path };
    },
    run: async (location, sql) => runSqlite(pathOf(location), sql),
  };
}

export function kindsOf(folder: TempFolder, server: PostgresServer): Readonly<Record<"sqlite" | "postgres", Kind>> {
  const postgres: Kind = {
    kind: "PostgreSQL",
    create: async () => ({ kind: "postgres", url: await server.createPlants() }),
    run: async (location, sql) => void (await runSql(urlOf(location), sql)),
  };
  return { sqlite: sqliteIn(folder), postgres };
}

/** Runs `work` with a move's source and target. */
export async function withMovable<Result>(
  from: PlantLocation,
  to: PlantLocation,
  work: (source: MovableStore, target: MovableStore) => Promise<Result>,
): Promise<Result> {
  await using source = await openMovableStore(from, "source");
  await using target = await openMovableStore(to, "target");
  return await work(source, target);
}

export const move = (from: PlantLocation, to: PlantLocation): Promise<StoreCounts | undefined> =>
  withMovable(from, to, (source, target) => movePlants(source, target));

/** Undoes an interrupted move. */
export const reopen = (from: PlantLocation, to: PlantLocation): Promise<void> => withMovable(from, to, reopenPlants);

/** Interrupts a move in the copy, after both stores were set aside. */
export async function interruptMove(from: PlantLocation, to: PlantLocation): Promise<void> {
  const moving = withMovable(from, to, (source, target) =>
    movePlants(source, { ...target, insertPlants: () => Promise.reject(new Error("interrupted")) }),
  );
  await expect(moving).rejects.toThrow(/interrupted; run the same command again/);
}

export async function importInto(location: PlantLocation, ids: readonly bigint[], restore = false): Promise<void> {
  await using database = await openPlantDatabase(location);
  await using running = await database.startImport({ restore });
  await running.add(ids);
}

export async function plantsOf(location: PlantLocation): Promise<bigint[]> {
  await using database = await openPlantDatabase(location);
  return (await collect(database.exportPlants())).flat();
}

export async function recordsOf(location: PlantLocation): Promise<object[]> {
  await using database = await openPlantDatabase(location);
  const records = (await collect(database.listDeletions())).flat();
  return records.map(({ plantId, deletedAtUs, subject, requestId }) => ({
    plantId,
    deletedAtMs: Number(deletedAtUs / 1_000n),
    subject,
    requestId,
  }));
}

export async function batchSizesOf(location: PlantLocation): Promise<readonly number[]> {
  await using database = await openPlantDatabase(location);
  const sizes = new Map<string, number>();
  for (const { batch } of (await collect(database.listDeletions())).flat())
    sizes.set(batch, (sizes.get(batch) ?? 0) + 1);
  return [...sizes.values()];
}

export const int64Min: bigint = -(2n ** 63n);
export const maxInt64: bigint = 2n ** 63n - 1n;
/** The call that deleted plant 2 in {@link createUsedStore}. */
export const key = { idempotencyKey: "key-of-2", subject: "ann" };

/** What moves need of a store. */
type Deleting = Pick<PlantStore, "delete" | "close" | "problem" | "isChecking">;

interface Stores {
  readonly createUsedStore: (kind: Kind) => Promise<PlantLocation>;
  readonly isUsable: (location: PlantLocation) => Promise<boolean>;
  readonly deleteFrom: (
    location: PlantLocation,
    ...deletions: readonly (readonly [id: bigint, call?: Parameters<typeof deleteCall>[0]])[]
  ) => Promise<boolean[]>;
}

/** Returns functions that delete plants as a server does. @param open - opens a store */
export function storesOpenedBy(open: (location: PlantLocation) => Promise<Deleting>): Stores {
  const isUsable: Stores["isUsable"] = async (location) => {
    const store = await open(location).catch(() => undefined);
    // A killed process leaves a log, for which the file is checked.
    if (store !== undefined) await expect.poll(() => store.isChecking ?? false).toBe(false);
    const isReady = store !== undefined && store.problem === undefined;
    await store?.close();
    return isReady;
  };

  const deleteFrom: Stores["deleteFrom"] = async (location, ...deletions) => {
    const store = await open(location);
    const outcomes = [];
    try {
      for (const [id, call] of deletions) outcomes.push(await store.delete(id, deleteCall(call)));
    } finally {
      await store.close();
    }
    return outcomes;
  };

  /** Creates a store with plants. Some were deleted, one with a key, and one was restored. */
  const createUsedStore: Stores["createUsedStore"] = async ({ create }) => {
    const location = await create();
    await importInto(location, [int64Min, 1n, 2n, 3n, 4n, maxInt64]);
    const text = "☘ {\"NULL\\',}\n";
    await deleteFrom(location, [2n, key], [3n], [4n, { subject: text, requestId: text }]);
    await importInto(location, [3n], true);
    return location;
  };

  return { createUsedStore, deleteFrom, isUsable };
}

const served = storesOpenedBy(openPlantStore);
export const createUsedStore: Stores["createUsedStore"] = served.createUsedStore;
export const isUsable: Stores["isUsable"] = served.isUsable;
export const deleteFrom: Stores["deleteFrom"] = served.deleteFrom;

/** Opens an SQLite store without its thread, which takes most of the time. */
export async function openWithoutThread(location: PlantLocation): Promise<Deleting> {
  const db = openDatabase({ file: pathOf(location) });
  const deleteBatch = prepareDeleteBatch(db);
  return {
    problem: undefined,
    delete: async (id, { subject, requestId, idempotencyKey = null }) => {
      const { outcomes } = deleteBatch([[id, subject, requestId, idempotencyKey]]);
      if (outcomes[0] !== "deleted" && outcomes[0] !== "absent") throw new Error(outcomes[0]);
      return outcomes[0] === "deleted";
    },
    close: async () => db.close(),
  };
}
