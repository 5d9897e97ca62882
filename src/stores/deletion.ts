import {
  idempotencyKeyReused,
  outcomeUnknown,
  plantProtected,
  queueFull,
  storeUnavailable,
  type DeleteCall,
} from "../service/index.ts";

/** How a deletion ends. `deleted` and `absent` are results; every other ending is an error for the caller. */
export type EndingKind =
  /** This call, or an earlier one with its idempotency key, has durably deleted the plant. */
  | "deleted"
  | "absent"
  /** A constraint or trigger of the database keeps the plant. */
  | "protected"
  /** The idempotency key belongs to another deletion. */
  | "key-reused"
  | "queue-full"
  /** Certainly nothing was done. */
  | "unavailable"
  | "unknown"
  | "cancelled";

/** An ending, with the error for the caller unless it is a result. */
export type Ending = { readonly kind: "deleted" | "absent" } | ErrorEnding;

/** An ending that is an error. */
export interface ErrorEnding {
  readonly kind: Exclude<EndingKind, "deleted" | "absent">;
  readonly error: unknown;
}

/** The endings. One with an error may be shared by all deletions of a batch. */
export const endings = {
  deleted: { kind: "deleted" },
  absent: { kind: "absent" },
  protected: (id: bigint, cause?: unknown): ErrorEnding => ({ kind: "protected", error: plantProtected(id, cause) }),
  keyReused: (): ErrorEnding => ({ kind: "key-reused", error: idempotencyKeyReused() }),
  queueFull: (): ErrorEnding => ({ kind: "queue-full", error: queueFull() }),
  unavailable: (cause?: unknown): FailedEnding => ({ kind: "unavailable", error: storeUnavailable(cause) }),
  unknown: (cause?: unknown): FailedEnding => ({ kind: "unknown", error: outcomeUnknown(cause) }),
  cancelled: (reason: unknown): ErrorEnding => ({ kind: "cancelled", error: reason }),
} as const;

/** The ending of every deletion that a failed batch leaves open. */
export interface FailedEnding {
  readonly kind: "unavailable" | "unknown";
  readonly error: Error;
}

/** The state of a deletion. What a store does with a batch that was sent is not visible here. */
export type DeletionState = "queued" | "sent" | "deferred" | "ended" | "answered";

interface Transitions {
  readonly next: readonly DeletionState[];
  readonly endings: readonly EndingKind[];
}

/**
 * What may follow each state, as docs/explanation/storage.md draws it. A deletion that is `deferred` waits for a later
 * batch, because another transaction has locked its plant or uses its key, or another deletion of its batch has the same
 * plant or key.
 */
export const transitions: Readonly<Record<DeletionState, Transitions>> = {
  queued: { next: ["sent"], endings: ["cancelled", "queue-full", "unavailable"] },
  sent: {
    next: ["deferred"],
    endings: ["deleted", "absent", "protected", "key-reused", "unavailable", "unknown", "cancelled"],
  },
  deferred: { next: ["sent"], endings: ["cancelled", "queue-full", "unavailable", "unknown"] },
  ended: { next: ["answered"], endings: [] },
  answered: { next: [], endings: [] },
};

/** The endings that become `unknown` for a deletion in doubt, because they mean that nothing was done. */
export const nothingDone: readonly EndingKind[] = ["unavailable", "queue-full"];

/** A deletion from its call to its ending, which is set exactly once, by {@link decide}. */
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

  /** Whether the deletion is in a batch that has neither ended nor deferred it. */
  get isOpen(): boolean {
    return this.#state === "sent";
  }

  get ending(): Ending | undefined {
    return this.#ending;
  }

  /** The token of the attempts of which one may have been committed; `undefined` unless the deletion is in doubt. */
  get token(): string | undefined {
    return this.#token;
  }

  send(): void {
    this.#enter("sent");
  }

  defer(): void {
    this.#enter("deferred");
  }

  /** Marks the deletion as in doubt, which it stays: an attempt with this token may have been committed, or may still be. */
  doubt(token: string): void {
    this.#token = token;
  }

  /** Ends the deletion. Its caller gets the ending with {@link answer}. */
  decide(ending: Ending): void {
    if (!transitions[this.#state].endings.includes(ending.kind)) throw this.#wrong(ending.kind);
    this.#state = "ended";
    const isDoubtful = this.#token !== undefined && nothingDone.includes(ending.kind) && "error" in ending;
    this.#ending = isDoubtful ? endings.unknown(ending.error) : ending;
  }

  /** Gives the ending to the caller, once; does nothing before there is one. */
  answer(): void {
    const ending = this.#ending;
    if (ending === undefined || this.#state === "answered") return;
    this.#enter("answered");
    if ("error" in ending) this.#reject(ending.error);
    else this.#resolve(ending.kind === "deleted");
  }

  /** Ends the deletion, and answers immediately. */
  end(ending: Ending): void {
    this.decide(ending);
    this.answer();
  }

  /** Ends the deletion if its call was cancelled, and returns whether. Reads the signal, which creates it. */
  endIfCancelled(): boolean {
    const { aborted, reason } = this.call.context.signal;
    if (aborted) this.end(endings.cancelled(reason));
    return aborted;
  }

  #enter(state: DeletionState): void {
    if (!transitions[this.#state].next.includes(state)) throw this.#wrong(state);
    this.#state = state;
  }

  #wrong(next: string): Error {
    return new Error(`a deletion that is ${this.#state} cannot become ${next}`);
  }
}

/** Returns the deletions of a batch that are open. Ends those whose call was cancelled. */
export function openOf(batch: readonly Deletion[]): readonly Deletion[] {
  return batch.filter((one) => one.isOpen && !one.endIfCancelled());
}

/**
 * Ends the deletions that a batch has left open: if it failed, including those it has deferred. A successful batch leaves
 * none; a store that does is wrong, and the outcome unknown.
 */
export function endRest(batch: readonly Deletion[], failure: FailedEnding | undefined): void {
  for (const one of batch) {
    if (one.isOpen) one.decide(failure ?? endings.unknown("the store has not ended the deletion"));
    else if (failure !== undefined && one.state === "deferred") one.decide(failure);
  }
}
