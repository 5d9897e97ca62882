import { ConnectError } from "@connectrpc/connect";
// oxfmt-ignore
import { type DeleteCall, idempotencyKeyReused, outcomeUnknown, plantProtected, storeUnavailable
} from "../../../src/service/index.ts";
import type { Outcome, Requested } from "../../../src/stores/contract/backend.ts";
import { BatchRun } from "../../../src/stores/postgres/delete/batch-run.ts";
import { singleServer, type StoreTables } from "../../../src/stores/postgres/delete/store-tables.ts";
import type { Session } from "../../../src/stores/postgres/server/session.ts";
import { deleteCall } from "./delete-call.ts";
import { runSql } from "./postgres-server.ts";
import { storeSchema, type StoreSchema } from "../../../src/stores/postgres/schema/store-schema.ts";

/** A deletion that was sent. Its caller is settled as by the queue. */
export interface SentDeletion extends Requested {
  readonly resolve: (deleted: boolean) => void;
  readonly reject: (reason: unknown) => void;
  outcome?: Outcome;
}

export interface RunBatchOptions {
  /** Default a single server. */
  readonly tables?: StoreTables;
  /** Called with each deletion that is locked. Fails by default. */
  readonly defer?: (one: Requested) => void;
}

/** Runs a batch, and returns whether each plant was deleted, or `undefined`. @throws BatchFailure if it fails */
export async function runBatchWith(
  session: Session,
  batch: readonly SentDeletion[],
  { tables = singleServer(schemaOf(session)), defer = failToDefer }: RunBatchOptions = {},
): Promise<readonly (boolean | undefined)[]> {
  const running = new BatchRun(session, tables);
  const { outcomes, causes = [] } = await running.run(batch);
  for (const [i, one] of batch.entries()) {
    one.outcome = outcomes[i] ?? "unknown";
    if (one.outcome === "locked") defer(one);
    else settle(one, one.outcome, causes[i]);
  }
  if (running.failure !== undefined) throw running.failure;
  return outcomes.map((outcome) => (outcome === "deleted" ? true : outcome === "absent" ? false : undefined));
}

function settle(one: SentDeletion, outcome: Exclude<Outcome, "locked">, cause: unknown): void {
  if (outcome === "deleted" || outcome === "absent") return one.resolve(outcome === "deleted");
  const { aborted, reason } = one.call.context.signal;
  if (aborted && outcome === "unavailable") return one.reject(reason);
  one.reject(errors[outcome === "unavailable" && one.doubts.length > 0 ? "unknown" : outcome](one.id, cause));
}

const errors = {
  protected: plantProtected,
  "key-reused": idempotencyKeyReused,
  unavailable: (_: bigint, cause: unknown) => storeUnavailable(cause),
  unknown: (_: bigint, cause: unknown) => outcomeUnknown(cause),
} as const;

export function failToDefer({ id }: Requested): never {
  throw new Error(`plant ${id} is locked`);
}

/** Returns a deletion that was sent, and calls a function as the queue does once it is settled. */
export const sentDeletion = (
  id: bigint,
  call: DeleteCall = deleteCall(),
  resolve: (deleted: boolean) => void = () => {},
  reject: (reason: unknown) => void = () => {},
): SentDeletion => ({ id, call, doubts: [], resolve, reject });

export const callersOf = (...ids: readonly bigint[]): SentDeletion[] => ids.map((id) => sentDeletion(id));

/** Returns a deletion with an idempotency key that ignores its outcome. */
export const callerWith = (id: bigint, idempotencyKey: string): SentDeletion =>
  sentDeletion(id, deleteCall({ idempotencyKey }));

/** Returns deletions, and what their callers have received. */
export function listenersOf(...ids: readonly bigint[]): {
  readonly deletions: SentDeletion[];
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

export const plantsOf = async (url: string): Promise<unknown[]> =>
  (await runSql(url, "SELECT id FROM plants ORDER BY id")).map(({ id }) => id);

/** Returns the first schema that `search_path` in a session's URL names. */
export const schemaOf = (session: Session): StoreSchema =>
  storeSchema(session.requestedSettings.get("search_path")?.split(",")[0] ?? "public");
