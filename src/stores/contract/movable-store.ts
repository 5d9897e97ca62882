import type { Deletion } from "./plant-database.ts";

/** A store's row counts. */
export interface StoreCounts {
  readonly plants: number;
  readonly records: number;
  /** Number of records with an idempotency key. */
  readonly keys: number;
}

/**
 * The source or target of a move, whose plants are in the table `moved_plants`. Servers may use the store at the same
 * time. Statements must be valid in SQLite and PostgreSQL. If the store fails, methods throw `StoreOpenError`.
 */
export interface MovableStore extends AsyncDisposable {
  /** The file or server, for operators. */
  readonly name: string;
  /** The query for {@link StoreCounts.keys}. */
  readonly countKeysSql: string;
  /** Begins a transaction, which locks the marks. With `isSnapshot`, all its statements read the same rows. */
  begin(isSnapshot: boolean): Promise<void>;
  /** Commits the transaction durably. */
  commit(): Promise<void>;
  /** Rolls the transaction back, if there is one. */
  rollBack(): Promise<void>;
  /** Runs a statement with the parameter `$1`. */
  run(sql: string, value?: string): Promise<void>;
  /** Returns the first row's columns as text. */
  get(sql: string): Promise<readonly (string | null)[]>;
  /** Lists all ids in ascending order, in chunks with at most 10,000 ids. */
  plants(): AsyncIterable<readonly bigint[]>;
  /** Lists all deletion records, oldest first, in chunks with at most 10,000 records. */
  records(): AsyncIterable<readonly Deletion[]>;
  insertPlants(ids: readonly bigint[]): Promise<void>;
  /** Inserts records and their idempotency keys. */
  insertRecords(records: readonly Deletion[]): Promise<void>;
}

/**
 * The marks that moves leave in a store's table `plantstore_schema`. A store with a mark that {@link asideProblemOf}
 * describes is set aside: its plants are in the table `moved_plants`, so that every statement of a server, an import or
 * an older release fails.
 */
export interface MoveMarks {
  /** Set in a source: the target's {@link fillingId}, a random id of this mark, the target's name, and the time. */
  readonly movedTo: string | null;
  /** Set in a target: {@link filling} during the move, and afterwards the source's `movedTo`. */
  readonly movedFrom: string | null;
  /** The ids of the moves to this target that were undone, separated by spaces. */
  readonly undone: string;
}

const filling = "filling";

/** Returns the mark of a target that a move with a random id is filling. */
export function fillingMark(id: string, source: string): string {
  return `${filling} ${id} from ${source} at ${new Date().toISOString()}`;
}

/** Returns the mark of a source whose target has been marked with `targetId`. */
export function movedMark(targetId: string, id: string, target: string): string {
  return `${targetId} ${id} ${target} at ${new Date().toISOString()}`;
}

/** Returns the id of the move that is filling a target, if there is one. */
export function fillingId({ movedFrom }: Pick<MoveMarks, "movedFrom">): string | undefined {
  return movedFrom?.startsWith(`${filling} `) === true ? movedFrom.split(" ")[1] : undefined;
}

/** Returns why a store is set aside, with the remedy for an operator. Returns `undefined` for a usable store. */
export function asideProblemOf(marks: Pick<MoveMarks, "movedTo" | "movedFrom">): string | undefined {
  const undo = 'undo an interrupted move with "plantstore migrate --reopen FROM TO"';
  if (fillingId(marks) !== undefined) {
    return `it is being filled by a move from ${wordsAfter(3, marks.movedFrom)}: finish it with the same "plantstore move", or ${undo}`;
  }
  if (marks.movedTo === null) return undefined;
  return `it was moved to ${wordsAfter(2, marks.movedTo)}: use that store, or ${undo}`;
}

function wordsAfter(count: number, mark: string | null): string {
  return mark?.split(" ").slice(count).join(" ") ?? "";
}
