import { ConnectError } from "@connectrpc/connect";
import type { PendingDelete } from "../../../src/stores/delete-queue.ts";
import { runBatch as runBatchAt, type RunBatchOptions } from "../../../src/stores/postgres/delete/run-batch.ts";
import { Session } from "../../../src/stores/postgres/server/session.ts";
import { deleteCall } from "./delete-call.ts";
import { runSql } from "./postgres-server.ts";
import { schemaOf } from "./schema-of.ts";
import { singleServer } from "../../../src/stores/postgres/delete/single-server.ts";

/** Runs a batch on a single server. */
export function runBatchWith(
  session: Session,
  pending: readonly PendingDelete[],
  options: Omit<RunBatchOptions, "placement">,
): ReturnType<typeof runBatchAt> {
  return runBatchAt(session, pending, { ...options, placement: singleServer(schemaOf(session)) });
}

/** Runs a batch of which no deletion may be deferred. */
export function runBatch(session: Session, pending: readonly PendingDelete[]): ReturnType<typeof runBatchAt> {
  return runBatchWith(session, pending, { defer: failToDefer });
}

/** Fails if a deletion is deferred. */
export function failToDefer({ id }: PendingDelete): never {
  throw new Error(`plant ${id} was deferred`);
}

/** Returns deletions that ignore their outcome. */
export function callersOf(...ids: readonly bigint[]): PendingDelete[] {
  return ids.map((id) => ({ id, call: deleteCall(), resolve: () => {}, reject: () => {} }));
}

/** Returns a deletion with an idempotency key that ignores its outcome. */
export function callerWith(id: bigint, idempotencyKey: string): PendingDelete {
  return { id, call: deleteCall({ idempotencyKey }), resolve: () => {}, reject: () => {} };
}

/** Returns deletions, and the first outcome of each. */
export function listenersOf(...ids: readonly bigint[]): {
  readonly deletions: PendingDelete[];
  readonly results: unknown[];
} {
  const results: unknown[] = ids.map(() => undefined);
  const result = (i: number, outcome: unknown): void => void (results[i] ??= outcome);
  const deletions = ids.map((id, i) => ({
    id,
    call: deleteCall(),
    resolve: (deleted: boolean) => result(i, deleted),
    reject: (reason: unknown) => result(i, ConnectError.from(reason).rawMessage),
  }));
  return { deletions, results };
}

/** Returns the ids of the plants in a database. */
export async function plantsOf(url: string): Promise<unknown[]> {
  return (await runSql(url, "SELECT id FROM plants ORDER BY id")).map(({ id }) => id);
}
