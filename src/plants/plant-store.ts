/**
 * Who deletes, for the deletion record and for giving up early.
 */
export interface DeleteCall {
  /** The principal's id text: JWT `sub`, or the name of the token. */
  readonly subject: string;
  /** The id that ties this call to its log lines. */
  readonly requestId: string;
  /** Aborts when the call is given up. A call that is aborted before it was sent to the database is dropped. */
  readonly signal: AbortSignal;
  /** What `signal.reason` is, for who asks once and needs no signal to be built. Where it is left out, the signal is asked. */
  readonly abortReason?: unknown;
}

/** Why a call was given up; `undefined` while it is wanted. */
export function abortReasonOf(call: DeleteCall): unknown {
  return "abortReason" in call ? call.abortReason : call.signal.reason;
}

/**
 * Where plants are kept.
 *
 * The contract that every store keeps: of any number of concurrent deletes of one id exactly one is
 * told `true`; nothing is acknowledged before it is durable; an acknowledged delete is never lost.
 */
export interface PlantStore {
  /**
   * Deletes the plant and says whether *this* call deleted it, once that is durable.
   *
   * A plant that is not there is a value, not an exception.
   *
   * @throws ConnectError `ResourceExhausted` when the queue is full, `Unavailable` when the store is
   * away or the outcome cannot be known, `FailedPrecondition` when the database keeps this plant, the
   * signal's reason when the call was given up before it was sent
   */
  delete(id: bigint, call: DeleteCall): Promise<boolean>;

  /** Why the store cannot delete now, in words for an operator; `undefined` while it can. */
  readonly problem: string | undefined;

  /** Finishes what was taken, then lets go of files and connections. Later deletes are `Unavailable`. */
  close(): Promise<void>;
}
