import type { DeleteCall, StoreConnections, StoreFile } from "../../service/index.ts";
import type { StoreProblem } from "./store-health.ts";

/**
 * A deletion's outcome after an attempt. `deleted` (by this call, or by an earlier call with its idempotency key) and
 * `absent` are durable. `protected`: a constraint or trigger in the database prevented the deletion. `locked`: another
 * transaction or another deletion of the batch has the plant or its idempotency key, so a later batch tries again.
 * `unavailable`: no attempt in this batch has deleted the plant. `unknown`: an attempt may have.
 */
export type Outcome = "deleted" | "absent" | "protected" | "key-reused" | "locked" | "unavailable" | "unknown";

/** A requested deletion. */
export interface Requested {
  readonly id: bigint;
  readonly call: DeleteCall;
  /** Tokens of attempts that may have been committed. The backend adds them. With a token, no error is `unavailable`. */
  readonly doubts: string[];
}

/** A batch's result. */
export interface BatchResult {
  /** The outcome of each deletion, in the batch's order. A missing outcome is `unknown`. */
  readonly outcomes: readonly Outcome[];
  /** The reason for each outcome that is an error, for operators. Default {@link failure}. */
  readonly causes?: readonly unknown[];
  /** Why the batch failed, for operators. Undefined if only some of its deletions failed. */
  readonly failure?: unknown;
}

/** A database that commits the batches of deletions from a store's queue, see {@link queuedStore}. */
export interface Backend {
  /** The file or server, for operators. */
  readonly name: string;
  readonly problem: StoreProblem | undefined;
  /**
   * Resolves once each outcome other than `locked` is final, and `deleted` and `absent` are durable.
   *
   * @param deadlineMs - when the attempts must end, on the `performance.now()` clock. Ignored by backends without retries
   */
  commit(batch: readonly Requested[], deadlineMs: number): Promise<BatchResult>;
  /** Closes files and connections. Called when no deletion is open. */
  close(): Promise<void>;
  /** Why deletions wait before the first batch, for operators. Undefined if deletions do not wait. */
  readonly pending?: string | undefined;
  readonly connections?: StoreConnections;
  readonly file?: StoreFile;
  /** By default, only lane 0, with one batch at a time. Lanes are unknown before the first batch. */
  readonly lanes?: Lanes;
}

/** A batch's timeout including retries, in milliseconds. Longer than a restart or failover takes. */
export const batchTimeoutMs = 10_000;

/** Divides deletions into lanes. Only deletions in the same lane share a batch. */
export interface Lanes {
  of(id: bigint): number;
  /** Maximum number of concurrent batches per lane. */
  readonly maxInFlight: number;
}

/** Returns a backend's name and problem. Undefined if the backend has no problem. */
export function problemOf({ name, problem }: Pick<Backend, "name" | "problem">): string | undefined {
  return problem && `${name}: ${problem.text}`;
}

/** Maximum length of a stored text, in characters. Meaningful subjects and request ids are shorter. */
const maxStorableTextChars = 1_024;

/**
 * Returns the text in a form that SQLite and PostgreSQL accept, so that an unusual subject does not fail its batch.
 * U+0000, which PostgreSQL refuses, becomes U+FFFD. Text over 1,024 characters is cut off, and ends with an ellipsis.
 */
export function toStorableText(text: string): string {
  const shortened = text.length > maxStorableTextChars ? `${text.slice(0, maxStorableTextChars - 1)}…` : text;
  // `includes` is several times faster than a `replaceAll` without a match.
  return shortened.includes("\0") ? shortened.replaceAll("\0", "\uFFFD") : shortened;
}

/** Returns whether SQLite and PostgreSQL store a text unchanged. UTF-8 would replace lone surrogates. */
export function isStorable(text: string): boolean {
  return toStorableText(text) === text && text.isWellFormed();
}
