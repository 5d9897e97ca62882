import {
  idempotencyKeyReused,
  outcomeUnknown,
  plantProtected,
  queueFull,
  storeUnavailable,
  type DeleteCall,
} from "../../service/index.ts";

/** How a deletion ends. `deleted` and `absent` are results. All other endings are errors for the caller. */
export type EndingKind =
  /** This call, or an earlier call with the same idempotency key, has durably deleted the plant. */
  | "deleted"
  | "absent"
  /** A constraint or trigger in the database prevented the deletion. */
  | "protected"
  | "key-reused"
  | "queue-full"
  /** No attempt has deleted anything. */
  | "unavailable"
  | "outcome-unknown"
  | "cancelled";

/** A deletion's ending, with the error for the caller, if any. */
export type Ending = { readonly kind: "deleted" | "absent" } | ErrorEnding;

/** An ending that is an error. */
export interface ErrorEnding {
  readonly kind: Exclude<EndingKind, "deleted" | "absent">;
  readonly error: unknown;
}

/** The endings. Several deletions may share an ending object. */
export const endings = {
  deleted: { kind: "deleted" },
  absent: { kind: "absent" },
  protected: (id: bigint, cause?: unknown): ErrorEnding => ({ kind: "protected", error: plantProtected(id, cause) }),
  keyReused: (): ErrorEnding => ({ kind: "key-reused", error: idempotencyKeyReused() }),
  queueFull: (): ErrorEnding => ({ kind: "queue-full", error: queueFull() }),
  unavailable: (cause?: unknown): FailedEnding => ({ kind: "unavailable", error: storeUnavailable(cause) }),
  outcomeUnknown: (cause?: unknown): FailedEnding => ({ kind: "outcome-unknown", error: outcomeUnknown(cause) }),
  cancelled: (reason: unknown): ErrorEnding => ({ kind: "cancelled", error: reason }),
} as const;

/** The ending for a failed batch's open deletions. */
export interface FailedEnding {
  readonly kind: "unavailable" | "outcome-unknown";
  readonly error: Error;
}

/**
 * A deletion's state. A deferred deletion waits for a later batch, because another transaction or another deletion in
 * its batch has its plant or idempotency key. A deletion is in doubt if an attempt may be committed.
 */
export type DeletionState = "queued" | "sent" | "in-doubt" | "deferred" | "deferred-in-doubt" | "ended" | "settled";

interface Transitions {
  readonly next: readonly DeletionState[];
  readonly endings: readonly EndingKind[];
  /** Endings that are replaced with `outcome-unknown`, because an earlier attempt may have deleted the plant. */
  readonly becomeUnknown?: readonly EndingKind[];
}

/**
 * The states and endings that may follow each state, as in docs/explanation/storage.md. A deletion in doubt stays in
 * doubt, even if deferred, because a later attempt without effect does not show the outcome of an earlier attempt.
 */
export const transitions: Readonly<Record<DeletionState, Transitions>> = {
  queued: { next: ["sent"], endings: ["cancelled", "queue-full", "unavailable"] },
  sent: {
    next: ["in-doubt", "deferred"],
    endings: ["deleted", "absent", "protected", "key-reused", "unavailable", "outcome-unknown", "cancelled"],
  },
  "in-doubt": {
    next: ["deferred-in-doubt"],
    endings: ["deleted", "absent", "protected", "key-reused", "outcome-unknown", "cancelled"],
    becomeUnknown: ["unavailable"],
  },
  deferred: { next: ["sent"], endings: ["cancelled", "queue-full", "unavailable", "outcome-unknown"] },
  "deferred-in-doubt": {
    next: ["in-doubt"],
    endings: ["cancelled", "outcome-unknown"],
    becomeUnknown: ["queue-full", "unavailable"],
  },
  ended: { next: ["settled"], endings: [] },
  settled: { next: [], endings: [] },
};

/** The error for a transition that is not in the table. The cause is a bug in the store. */
export class TransitionError extends Error {
  override readonly name = "TransitionError";
}

/** A requested deletion. {@link decide} sets the ending, exactly once. */
export class Deletion {
  readonly id: bigint;
  readonly call: DeleteCall;
  readonly #resolve: (deleted: boolean) => void;
  readonly #reject: (reason: unknown) => void;
  #state: DeletionState = "queued";
  #ending: Ending | undefined;
  #token: string | undefined;

  constructor(id: bigint, call: DeleteCall, resolve: (deleted: boolean) => void, reject: (reason: unknown) => void) {
    this.id = id;
    this.call = call;
    this.#resolve = resolve;
    this.#reject = reject;
  }

  get state(): DeletionState {
    return this.#state;
  }

  get isOpen(): boolean {
    return this.#state === "sent" || this.#state === "in-doubt";
  }

  get isDeferred(): boolean {
    return this.#state === "deferred" || this.#state === "deferred-in-doubt";
  }

  get ending(): Ending | undefined {
    return this.#ending;
  }

  /** The token of attempts that may have been committed. Undefined unless the deletion is in doubt. */
  get token(): string | undefined {
    return this.#token;
  }

  send(): void {
    this.#enter(this.#token === undefined ? "sent" : "in-doubt");
  }

  defer(): void {
    this.#enter(this.#token === undefined ? "deferred" : "deferred-in-doubt");
  }

  /**
   * Marks the deletion as in doubt until it ends. An attempt with this token may have been or may still be committed.
   *
   * @throws TransitionError if the deletion already has another token, because only one token's records are looked up
   */
  doubt(token: string): void {
    if (this.#token === token && this.isOpen) return;
    if (this.#token !== undefined) throw this.#wrong("in doubt with another token");
    this.#enter("in-doubt");
    this.#token = token;
  }

  /** Ends the deletion. {@link settle} informs the caller. @throws TransitionError if the state forbids the ending */
  decide(ending: Ending): void {
    const { endings: allowed, becomeUnknown } = transitions[this.#state];
    const becomesUnknown = "error" in ending && becomeUnknown?.includes(ending.kind) === true;
    if (!becomesUnknown && !allowed.includes(ending.kind)) throw this.#wrong(ending.kind);
    this.#state = "ended";
    this.#ending = becomesUnknown ? endings.outcomeUnknown(ending.error) : ending;
  }

  /** Settles the caller's promise with the ending, once. Does nothing before the deletion has ended. */
  settle(): void {
    const ending = this.#ending;
    if (ending === undefined || this.#state === "settled") return;
    this.#enter("settled");
    if ("error" in ending) this.#reject(ending.error);
    else this.#resolve(ending.kind === "deleted");
  }

  end(ending: Ending): void {
    this.decide(ending);
    this.settle();
  }

  /** Ends the deletion and returns true if its call was cancelled. Reading `signal` creates the signal. */
  endIfCancelled(): boolean {
    const { aborted, reason } = this.call.context.signal;
    if (aborted) this.end(endings.cancelled(reason));
    return aborted;
  }

  #enter(state: DeletionState): void {
    if (!transitions[this.#state].next.includes(state)) throw this.#wrong(state);
    this.#state = state;
  }

  #wrong(next: string): TransitionError {
    return new TransitionError(`a deletion that is ${this.#state} cannot become ${next}`);
  }
}

/** Returns a batch's open deletions. Ends the deletions of cancelled calls. */
export function openOf(batch: readonly Deletion[]): readonly Deletion[] {
  return batch.filter((one) => one.isOpen && !one.endIfCancelled());
}
