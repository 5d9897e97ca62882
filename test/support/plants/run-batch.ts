import { ConnectError } from "@connectrpc/connect";
import { Deletion } from "../../../src/stores/contract/deletion.ts";
import type { DeleteCall } from "../../../src/service/plant-store.ts";
import {
  runBatch as runBatchOfStore,
  type RunBatchOptions as StoreOptions,
} from "../../../src/stores/postgres/delete/run-batch.ts";
import { Session } from "../../../src/stores/postgres/server/session.ts";
import { deleteCall } from "./delete-call.ts";
import { runSql } from "./postgres-server.ts";
import { schemaOf } from "./schema-of.ts";
import { singleServer } from "../../../src/stores/postgres/delete/single-server.ts";

/** Options for {@link runBatchAt}. */
export interface RunBatchOptions extends StoreOptions {
  /** Called with each deletion that is deferred. */
  readonly defer: (one: Deletion) => void;
  /** The token for deletions that are in doubt. */
  readonly token?: string | undefined;
}

/** Runs a batch, and returns whether each deletion has deleted its plant, or `undefined` for all other endings. */
export async function runBatchAt(
  session: Session,
  batch: readonly Deletion[],
  { defer, token, ...options }: RunBatchOptions,
): Promise<readonly (boolean | undefined)[]> {
  const firsts = new Map(batch.toReversed().map((one) => [one.id, one]));
  for (const one of batch) {
    if (one.isDeferred) one.send();
    if (token !== undefined && firsts.get(one.id) === one) one.doubt(token);
  }
  await runBatchOfStore(session, batch, options);
  for (const one of batch) if (one.isDeferred) defer(one);
  return batch.map(resultOf);
}

/** Returns whether a deletion has deleted its plant, or `undefined` if it has not ended, or has failed. */
export function resultOf({ ending }: Deletion): boolean | undefined {
  return ending === undefined || "error" in ending ? undefined : ending.kind === "deleted";
}

/** Runs a batch on a single server. */
export function runBatchWith(
  session: Session,
  batch: readonly Deletion[],
  options: Omit<RunBatchOptions, "placement">,
): ReturnType<typeof runBatchAt> {
  return runBatchAt(session, batch, { ...options, placement: singleServer(schemaOf(session)) });
}

/** Runs a batch in which no deletion may be deferred. */
export function runBatch(session: Session, batch: readonly Deletion[]): ReturnType<typeof runBatchAt> {
  return runBatchWith(session, batch, { defer: failToDefer });
}

/** Fails if a deletion is deferred. */
export function failToDefer({ id }: Deletion): never {
  throw new Error(`plant ${id} was deferred`);
}

/** Returns a deletion that was sent, and functions that get its ending. */
export function sentDeletion(
  id: bigint,
  call: DeleteCall = deleteCall(),
  resolve: (deleted: boolean) => void = () => {},
  reject: (reason: unknown) => void = () => {},
): Deletion {
  const deletion = new Deletion(id, call, resolve, reject);
  deletion.send();
  return deletion;
}

/** Returns deletions that ignore their endings. */
export function callersOf(...ids: readonly bigint[]): Deletion[] {
  return ids.map((id) => sentDeletion(id));
}

/** Returns a deletion with an idempotency key that ignores its ending. */
export function callerWith(id: bigint, idempotencyKey: string): Deletion {
  return sentDeletion(id, deleteCall({ idempotencyKey }));
}

/** Returns deletions, and what their callers have received. */
export function listenersOf(...ids: readonly bigint[]): {
  readonly deletions: Deletion[];
  readonly results: unknown[];
} {
  const results: unknown[] = ids.map(() => undefined);
  const result = (i: number, outcome: unknown): void => void (results[i] ??= outcome);
  const deletions = ids.map((id, i) =>
    sentDeletion(
      id,
      deleteCall(),
      (deleted) => result(i, deleted),
      (reason) => result(i, ConnectError.from(reason).rawMessage),
    ),
  );
  return { deletions, results };
}

/** Returns the ids of a database's plants. */
export async function plantsOf(url: string): Promise<unknown[]> {
  return (await runSql(url, "SELECT id FROM plants ORDER BY id")).map(({ id }) => id);
}
