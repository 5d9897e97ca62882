import type { DeleteCall } from "../../../service/index.ts";
import type { Outcome, Requested } from "../../contract/backend.ts";

/** How a deletion ends in a batch. `cause` is the reason for an error, for operators. */
export interface Ending {
  readonly outcome: Exclude<Outcome, "locked">;
  readonly cause?: unknown;
}

/** The ending for a failed batch's open and deferred deletions. */
export interface FailedEnding extends Ending {
  readonly outcome: "unavailable" | "unknown";
}

/** The endings. Several deletions may share an ending object. */
export const endings = {
  deleted: { outcome: "deleted" },
  absent: { outcome: "absent" },
  keyReused: { outcome: "key-reused" },
  protected: (cause: unknown): Ending => ({ outcome: "protected", cause }),
  unavailable: (cause: unknown): FailedEnding => ({ outcome: "unavailable", cause }),
  unknown: (cause: unknown): FailedEnding => ({ outcome: "unknown", cause }),
} as const;

/** The error for a second ending or a second token. The cause is a bug in the store. */
export class TransitionError extends Error {
  override readonly name = "TransitionError";
}

/**
 * A requested deletion during one batch. Open until it ends, once, or is deferred to a later batch, because another
 * transaction or another deletion in the batch has its plant or idempotency key.
 */
export class Deletion {
  readonly id: bigint;
  readonly call: DeleteCall;
  readonly #doubts: string[];
  #ending: Ending | undefined;
  #isDeferred = false;

  constructor({ id, call, doubts }: Requested) {
    this.id = id;
    this.call = call;
    this.#doubts = doubts;
  }

  get isOpen(): boolean {
    return !this.#isDeferred && this.#ending === undefined;
  }

  get isDeferred(): boolean {
    return this.#isDeferred;
  }

  get ending(): Ending | undefined {
    return this.#ending;
  }

  /** The token of attempts that may have been committed, in this batch or an earlier one. Undefined without such. */
  get token(): string | undefined {
    return this.#doubts[0];
  }

  defer(): void {
    this.#assertOpen();
    this.#isDeferred = true;
  }

  /**
   * Marks the deletion as in doubt. An attempt with this token may have been or may still be committed.
   *
   * @throws TransitionError if the deletion already has another token, because only one token's records are looked up
   */
  doubt(token: string): void {
    this.#assertOpen();
    if (this.token === undefined) this.#doubts.push(token);
    else if (this.token !== token) throw new TransitionError("a deletion in doubt cannot get another token");
  }

  /** @throws TransitionError if the deletion is not open */
  end(ending: Ending): void {
    this.#assertOpen();
    this.#ending = ending;
  }

  /** Ends the deletion and returns true if its call was cancelled. Reading `signal` creates the signal. */
  endIfCancelled(): boolean {
    const { aborted, reason } = this.call.context.signal;
    if (aborted) this.end(endings.unavailable(reason));
    return aborted;
  }

  /** Fails the deletion with its batch, unless it has ended. */
  fail(ending: FailedEnding): void {
    this.#isDeferred = false;
    this.#ending ??= ending;
  }

  #assertOpen(): void {
    if (!this.isOpen) throw new TransitionError(`deletion of plant ${this.id} has already ended or is deferred`);
  }
}

/** Returns a batch's open deletions. Ends the deletions of cancelled calls. */
export function openOf(batch: readonly Deletion[]): readonly Deletion[] {
  return batch.filter((one) => one.isOpen && !one.endIfCancelled());
}
