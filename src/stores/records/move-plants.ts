import { randomUUID } from "node:crypto";
import {
  type MovableStore,
  type StoreCounts,
  asideProblemOf,
  fillingId,
  fillingMark,
  type MoveMarks,
  movedMark,
} from "../contract/movable-store.ts";
import { StoreOpenError } from "../contract/store-options.ts";

type OnProgress = (what: "deletion records" | "plants", rows: number) => void;

const setAsideSql = "ALTER TABLE plants RENAME TO moved_plants";
const bringBackSql = "ALTER TABLE moved_plants RENAME TO plants";

/**
 * Moves plants, deletion records and idempotency keys to an empty store, as a used store may have deleted a plant and
 * dropped its record. Returns the number of moved rows, or `undefined` if an earlier run has moved everything.
 *
 * First both stores are set aside, durably: the target with a random id, then the source with the target's id. From then
 * on, all statements of servers and imports fail. One transaction of the target copies a snapshot, and makes the target
 * usable. So at no time are both stores usable. After an interruption, the same move continues, or {@link reopenPlants}
 * undoes it.
 *
 * @throws StoreOpenError when a store fails, the target is not empty, or the stores' counts differ after the copy
 */
export async function movePlants(
  source: MovableStore,
  target: MovableStore,
  onProgress: OnProgress = () => undefined,
): Promise<StoreCounts | undefined> {
  const id = randomUUID();
  const reserved = await reserve(target, fillingMark(id, source.name));
  const targetId = fillingId({ movedFrom: reserved });
  const found = await transact(source, async (marks) => marks);
  if (targetId === undefined) {
    if (found.movedTo === reserved) return undefined;
    throw moveErrorOf(target, "it was filled by another move; move to a new store");
  }
  const problem = sourceProblem(found, targetId, reserved);
  if (problem !== undefined) {
    if (targetId === id) await undo(target, null);
    throw moveErrorOf(source, problem);
  }
  try {
    const mark = await markMoved(source, targetId, movedMark(targetId, randomUUID(), target.name));
    return await copy(source, target, { reserved, mark }, onProgress);
  } catch (cause) {
    const text = cause instanceof Error ? cause.message : String(cause);
    const advice = 'run the same command again, or undo it with "plantstore migrate --reopen FROM TO"';
    throw new StoreOpenError(`${text}; ${advice}`, { cause });
  } finally {
    for (const store of [target, source]) await store.rollBack().catch(() => undefined);
  }
}

function sourceProblem(marks: MoveMarks, targetId: string, reserved: string): string | undefined {
  if (marks.movedFrom === reserved) return "it is both the source and the target";
  return marks.movedTo?.startsWith(`${targetId} `) === true ? undefined : asideProblemOf(marks);
}

/** Sets an empty store aside, durably. Returns its mark: `mark`, or the mark of an earlier move to this store. */
function reserve(target: MovableStore, mark: string): Promise<string> {
  return transact(target, async (marks) => {
    if (marks.movedTo !== null) throw moveErrorOf(target, asideProblemOf(marks));
    if (marks.movedFrom !== null) return marks.movedFrom;
    // Waits for other writers, so that the counts are final.
    await target.run(setAsideSql);
    const counts = await countRows(target);
    if (counts.plants + counts.records > 0)
      throw moveErrorOf(target, `it has ${describe(counts)}: move to a new store; nothing was moved`);
    await target.run("UPDATE plantstore_schema SET moved_from = $1", mark);
    return mark;
  });
}

/** Sets a source aside, durably. Returns its mark: `mark`, or the mark of an earlier move to the same target. */
function markMoved(source: MovableStore, targetId: string, mark: string): Promise<string> {
  return transact(source, async (marks) => {
    const problem = sourceProblem(marks, targetId, "");
    if (problem !== undefined) throw moveErrorOf(source, problem);
    if (marks.movedTo !== null) return marks.movedTo;
    await source.run(setAsideSql);
    await source.run("UPDATE plantstore_schema SET moved_to = $1", mark);
    return mark;
  });
}

/** Copies all rows and makes the target usable, in one transaction of the target. */
async function copy(
  source: MovableStore,
  target: MovableStore,
  { reserved, mark }: { readonly reserved: string; readonly mark: string },
  onProgress: OnProgress,
): Promise<StoreCounts> {
  await target.begin(false);
  if ((await marksOf(target)).movedFrom !== reserved) throw moveErrorOf(target, "another command has changed its mark");
  await source.begin(true);
  await assertMark(source, mark);
  let [records, plants] = [0, 0];
  for await (const chunk of source.records()) {
    await target.insertRecords(chunk);
    onProgress("deletion records", (records += chunk.length));
  }
  for await (const ids of source.plants()) {
    await target.insertPlants(ids);
    onProgress("plants", (plants += ids.length));
  }
  const [expected, found] = [await countRows(source), await countRows(target)];
  // A trigger in the target may have dropped or added rows.
  if (describe(found) !== describe(expected))
    throw moveErrorOf(target, `it has ${describe(found)}, expected ${describe(expected)}; nothing was moved`);
  await target.run(bringBackSql);
  await target.run("UPDATE plantstore_schema SET moved_from = $1", mark);
  await assertMark(source, mark);
  await target.commit();
  return found;
}

async function countRows(store: MovableStore): Promise<StoreCounts> {
  const sql = `SELECT (SELECT count(*) FROM moved_plants), (SELECT count(*) FROM deletions), (${store.countKeysSql})`;
  const [plants = Number.NaN, records = Number.NaN, keys = Number.NaN] = (await store.get(sql)).map(Number);
  return { plants, records, keys };
}

async function assertMark(source: MovableStore, mark: string): Promise<void> {
  if ((await marksOf(source)).movedTo !== mark) throw moveErrorOf(source, "another command has changed its mark");
}

/**
 * Undoes an interrupted move, durably. Makes the target usable first, which waits for a commit that still runs.
 *
 * @throws StoreOpenError if the target was filled from the source, or is not the target of an interrupted move
 */
export async function reopenPlants(source: MovableStore, target: MovableStore): Promise<void> {
  const { movedTo } = await transact(source, async (marks) => marks);
  await undo(target, movedTo);
  if (movedTo === null) return;
  await transact(source, async (marks) => {
    if (marks.movedTo !== movedTo) throw moveErrorOf(source, "another command has changed its mark");
    await source.run(bringBackSql);
    await source.run("UPDATE plantstore_schema SET moved_to = NULL");
  });
}

/** Makes a target usable again, unless it was filled. @param movedTo - the source's mark */
function undo(target: MovableStore, movedTo: string | null): Promise<void> {
  return transact(target, async (marks) => {
    const [sourceId] = movedTo?.split(" ") ?? [];
    const targetId = fillingId(marks);
    if (targetId !== undefined && (sourceId ?? targetId) === targetId) {
      await target.run(bringBackSql);
      await target.run("UPDATE plantstore_schema SET moved_from = NULL, undone = undone || $1", `${targetId} `);
      return;
    }
    if (sourceId === undefined) throw moveErrorOf(target, "no interrupted move to it is known; nothing was changed");
    if (marks.movedFrom === movedTo) throw moveErrorOf(target, "the move to it has finished: use this store");
    // Another source may have filled the target after this source's move was interrupted.
    const wasFilledByOther = marks.movedFrom?.startsWith(`${sourceId} `) === true;
    if (!wasFilledByOther && !marks.undone.split(" ").includes(sourceId))
      throw moveErrorOf(target, "it is not the target of the interrupted move; nothing was changed");
  });
}

async function transact<Result>(store: MovableStore, work: (marks: MoveMarks) => Promise<Result>): Promise<Result> {
  try {
    await store.begin(false);
    const result = await work(await marksOf(store));
    await store.commit();
    return result;
  } catch (fault) {
    await store.rollBack().catch(() => undefined);
    throw fault;
  }
}

async function marksOf(store: MovableStore): Promise<MoveMarks> {
  const [movedTo = null, movedFrom = null, undone] = await store.get(
    "SELECT moved_to, moved_from, undone FROM plantstore_schema",
  );
  return { movedTo, movedFrom, undone: undone ?? "" };
}

function moveErrorOf({ name }: MovableStore, problem: string | undefined): StoreOpenError {
  return new StoreOpenError(`${name}: ${problem}`);
}

function describe({ plants, records, keys }: StoreCounts): string {
  return `${plants} plants, ${records} deletion records and ${keys} idempotency keys`;
}
