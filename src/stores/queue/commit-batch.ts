import type { Attempt, Backend } from "../contract/backend.ts";
import { type Deletion, endings, type FailedEnding, TransitionError } from "../contract/deletion.ts";

/**
 * Commits a batch of sent deletions, and decides the ending of each deletion that is not deferred. A failed batch also
 * fails its deferred deletions. If a successful batch leaves a deletion open, the backend has a bug, and the deletion's
 * outcome is unknown. Returns the ending for a failed batch, and never rejects.
 */
export async function commitBatch(
  backend: Backend,
  batch: readonly Deletion[],
  attempt: Attempt,
): Promise<FailedEnding | undefined> {
  let failure: FailedEnding | undefined;
  try {
    failure = await backend.commit(batch, attempt);
  } catch (fault) {
    // Only emits a warning, because callers need an ending in any case. The warning fails the tests.
    if (fault instanceof TransitionError) process.emitWarning(fault);
    failure = endings.outcomeUnknown(fault);
  }
  for (const one of batch) {
    if (one.isOpen) one.decide(failure ?? endings.outcomeUnknown("the store has not ended the deletion"));
    else if (failure !== undefined && one.isDeferred) one.decide(failure);
  }
  return failure;
}
