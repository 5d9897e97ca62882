import { ConnectError } from "@connectrpc/connect";
import {
  type DeleteCall,
  idempotencyKeyReused,
  outcomeUnknown,
  plantProtected,
  storeUnavailable,
} from "../../../src/service/index.ts";
import type { Requested } from "../../../src/stores/contract/backend.ts";
import { Deletion, type Ending } from "../../../src/stores/postgres/delete/deletion.ts";
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
  const sent = batch.map((one) => (one.isDeferred && one instanceof SentDeletion ? one.again() : one));
  const firsts = new Map(sent.toReversed().map((one) => [one.id, one]));
  if (token !== undefined) for (const one of firsts.values()) one.doubt(token);
  await runBatchOfStore(session, sent, options);
  for (const one of sent) if (one.isDeferred) defer(one);
  return sent.map(resultOf);
}

/** Returns whether a deletion has deleted its plant, or `undefined` if it has not ended, or has failed. */
export function resultOf({ ending }: Deletion): boolean | undefined {
  if (ending?.outcome === "deleted") return true;
  return ending?.outcome === "absent" ? false : undefined;
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

/** Returns a deletion that was sent, and calls a function as the queue does once it ends. */
export function sentDeletion(
  id: bigint,
  call: DeleteCall = deleteCall(),
  resolve: (deleted: boolean) => void = () => {},
  reject: (reason: unknown) => void = () => {},
): Deletion {
  return new SentDeletion({ id, call, doubts: [] }, resolve, reject);
}

class SentDeletion extends Deletion {
  readonly #requested: Requested;
  readonly #resolve: (deleted: boolean) => void;
  readonly #reject: (reason: unknown) => void;

  constructor(requested: Requested, resolve: (deleted: boolean) => void, reject: (reason: unknown) => void) {
    super(requested);
    this.#requested = requested;
    this.#resolve = resolve;
    this.#reject = reject;
  }

  /** Returns the deletion for another batch. */
  again(): SentDeletion {
    return new SentDeletion(this.#requested, this.#resolve, this.#reject);
  }

  override end(ending: Ending): void {
    super.end(ending);
    const { outcome, cause } = ending;
    if (outcome === "deleted" || outcome === "absent") return this.#resolve(outcome === "deleted");
    const { aborted, reason } = this.call.context.signal;
    if (aborted && cause === reason) return this.#reject(reason);
    this.#reject(errors[outcome === "unavailable" && this.token !== undefined ? "unknown" : outcome](this.id, cause));
  }
}

const errors = {
  protected: plantProtected,
  "key-reused": idempotencyKeyReused,
  unavailable: (_: bigint, cause: unknown) => storeUnavailable(cause),
  unknown: (_: bigint, cause: unknown) => outcomeUnknown(cause),
} as const;

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
