import { closing } from "../../../protoport/testing/src/closing.ts";
import { openPlantDatabase } from "../../../src/stores/index.ts";
import type { ImportOptions, PlantDatabase, PlantImport } from "../../../src/stores/contract/plant-database.ts";
import type { PlantStore } from "../../../src/service/plant-store.ts";
import { deleteCall } from "./delete-call.ts";
import type { OpenWithDatabase } from "./opened-store.ts";

/** A store whose database belongs to the test. */
export type Opened = Awaited<ReturnType<OpenWithDatabase>>;

/** How to stop a store kind's job in the middle of a statement or transaction. */
export interface Pauses {
  /** Makes imports wait before their commit. The returned function waits for one, and `release` lets it commit. */
  readonly holdImports?: (opened: Opened) => Promise<Held>;
  /** Makes every drop of deletion records wait. */
  readonly holdRetention: (opened: Opened) => Promise<Held>;
  /** SQL that adds a record, which is three days old, for each plant from 1 to 10,001. */
  readonly oldRecordsSql: string;
}

/** A job that waits. */
export interface Held {
  /** Waits until the job has reached the place; missing if it cannot be observed. */
  readonly reached?: () => Promise<void>;
  release(): Promise<void> | void;
}

/** What must hold when another operation runs during a job. */
export interface Interleaving {
  readonly fact: string;
  readonly plants: readonly bigint[];
  readonly run: (opened: Opened, pauses: Pauses) => Promise<void>;
}

export const upTo = (last: number): bigint[] => Array.from({ length: last }, (_, i) => BigInt(i + 1));
/** More plants than a chunk of an export has. */
export const moreThanOneChunk: readonly bigint[] = upTo(10_001);
/** The shortest time for which a store keeps records. */
export const deletionsKeptMs: number = 3_600_000;

export async function withDatabase<Result>(
  { database }: Opened,
  work: (of: PlantDatabase) => Promise<Result>,
): Promise<Result> {
  await using opened = await openPlantDatabase(database.location);
  return await work(opened);
}

export const withImport = (
  opened: Opened,
  work: (running: PlantImport) => Promise<void>,
  options: ImportOptions = {},
): Promise<void> =>
  withDatabase(opened, async (database) => {
    await using running = await database.startImport(options);
    await work(running);
  });

export async function deleteEach(
  store: PlantStore,
  ids: readonly bigint[],
  idempotencyKey?: string,
): Promise<boolean[]> {
  const outcomes: boolean[] = [];
  for (const id of ids) outcomes.push(await store.delete(id, deleteCall({ idempotencyKey })));
  return outcomes;
}

export const deleteTogether = (store: PlantStore, ids: readonly bigint[]): Promise<boolean[]> =>
  Promise.all(ids.map((id) => store.delete(id, deleteCall())));

/** Opens a store that drops expired records, and closes it when `work` is done. */
export async function withRetention({ reopen }: Opened, work: (again: PlantStore) => Promise<void>): Promise<void> {
  await using again = closing(await reopen({ deletionsKeptMs }));
  await work(again);
}
