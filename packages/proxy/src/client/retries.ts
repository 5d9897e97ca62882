import type { DescMethod } from "@bufbuild/protobuf";
import { Code, type ConnectError } from "@connectrpc/connect";
import { timerMsMax } from "@plantstore/gateway/exchange";
import { type OptionNames, required } from "@plantstore/gateway/options";
import { requireRange } from "../upstreams/index.ts";

const defaultBudget = { maxTokens: 100, tokenRatio: 0.1 };

/** Which calls that have failed are sent again although their server may have processed them, and when (gRFC A6). */
export interface RetryPolicy {
  /** How often a call is sent at most, the first time included: from 2 to 5. */
  readonly maxAttempts: number;
  /** Milliseconds before the second attempt, give or take a fifth. */
  readonly initialBackoffMs: number;
  /** Milliseconds that the wait before an attempt is lengthened to at most. */
  readonly maxBackoffMs: number;
  /** By how much each wait is longer than the one before it. */
  readonly backoffMultiplier: number;
  /** The codes that are worth another attempt, such as `Code.Unavailable`. */
  readonly retryableCodes: readonly Code[];
  /** The methods whose calls may be processed twice. By default all. */
  readonly methods?: (method: DescMethod) => boolean;
  /**
   * How many failures are allowed for all calls: each takes one of `maxTokens`, each success gives back `tokenRatio`, and
   * nothing is sent again while half of them, or fewer, are left. Default 100 and 0.1: if most calls fail, every tenth
   * success pays for one more attempt.
   */
  readonly budget?: { readonly maxTokens: number; readonly tokenRatio: number };
}

/** The names of {@link RetryPolicy}. */
export const retryPolicyNames: OptionNames<RetryPolicy> = {
  maxAttempts: required,
  initialBackoffMs: required,
  maxBackoffMs: required,
  backoffMultiplier: required,
  retryableCodes: required,
  methods: true,
  budget: defaultBudget,
};

/** What {@link Retries} ask of a call that has failed. */
export interface FailedCall {
  readonly method: DescMethod;
  readonly error: ConnectError;
  /** The field `grpc-retry-pushback-ms`, by which a server says when it wants the call again; `null` if it says nothing. */
  readonly pushback: string | null;
  /** How often the call was sent. */
  readonly attempts: number;
  /** How often since a server last said when it wants it. */
  readonly attemptsSincePushback: number;
}

/** By which share a wait is longer or shorter by chance, so that callers do not come back all at once. */
const jitter = 0.2;

/** When calls of a transport are sent again, by a policy or without one. */
export class Retries {
  /** Whether a call that was certainly not processed is sent again. */
  readonly repeatsUntouched: boolean;
  readonly #policy: RetryPolicy | undefined;
  readonly #budget: { readonly maxTokens: number; readonly tokenRatio: number };
  #tokens: number;

  /** @throws RangeError for a number out of range */
  constructor(setting: RetryPolicy | "transparent" | "off") {
    this.repeatsUntouched = setting !== "off";
    this.#policy = typeof setting === "string" ? undefined : setting;
    this.#budget = this.#policy?.budget ?? defaultBudget;
    this.#tokens = this.#budget.maxTokens;
    if (this.#policy !== undefined) requirePolicy(this.#policy, this.#budget);
  }

  /** Notes that a call has succeeded. */
  succeeded(): void {
    this.#tokens = Math.min(this.#tokens + this.#budget.tokenRatio, this.#budget.maxTokens);
  }

  /** Notes that an attempt has failed. @returns the milliseconds until the next one; `undefined` if there is none */
  failed({ method, error, pushback, attempts, attemptsSincePushback }: FailedCall): number | undefined {
    const policy = this.#policy;
    if (policy === undefined) return undefined;
    const isRetryable = policy.retryableCodes.includes(error.code) && allows(policy, method);
    const pushbackMs = pushback === null ? undefined : readPushback(pushback);
    const isUnwanted = pushback !== null && pushbackMs === undefined;
    // gRFC A6, "Throttling Retry Attempts": so does a failure after which the server wants no other attempt.
    if (isRetryable || isUnwanted) this.#tokens = Math.max(0, this.#tokens - 1);
    if (!isRetryable || isUnwanted || attempts >= policy.maxAttempts) return undefined;
    if (this.#tokens <= this.#budget.maxTokens / 2) return undefined;
    if (pushbackMs !== undefined) return pushbackMs;
    const { initialBackoffMs, backoffMultiplier, maxBackoffMs } = policy;
    const backoffMs = Math.min(initialBackoffMs * backoffMultiplier ** (attemptsSincePushback - 1), maxBackoffMs);
    return backoffMs * (1 + jitter * (2 * Math.random() - 1));
  }
}

/** Returns whether calls of a method may be processed twice: only if `methods` returns true, and no promise of it. */
function allows({ methods }: RetryPolicy, method: DescMethod): boolean {
  if (methods === undefined) return true;
  const isAllowed: unknown = methods(method);
  return isAllowed === true;
}

/** gRFC A6, "Pushback": anything but a number of milliseconds says that the call is not wanted again. */
function readPushback(text: string): number | undefined {
  const value = /^[0-9]{1,10}$/.test(text) ? Number(text) : timerMsMax + 1;
  return value <= timerMsMax ? value : undefined;
}

function requirePolicy(policy: RetryPolicy, budget: typeof defaultBudget): void {
  requireRange("retry.maxAttempts", policy.maxAttempts, 2, 5);
  requireRange("retry.initialBackoffMs", policy.initialBackoffMs, 1, timerMsMax / 2);
  requireRange("retry.maxBackoffMs", policy.maxBackoffMs, 1, timerMsMax / 2);
  requireRange("retry.backoffMultiplier", policy.backoffMultiplier, 1, Number.MAX_SAFE_INTEGER);
  requireRange("retry.retryableCodes.length", policy.retryableCodes.length, 1, 16);
  for (const code of policy.retryableCodes) requireRange("a code of retry.retryableCodes", code, 1, 16);
  requireRange("retry.budget.maxTokens", budget.maxTokens, 1, 1_000);
  requireRange("retry.budget.tokenRatio", budget.tokenRatio, 0, 1_000);
}

/** What calls do without a policy. */
export const transparentRetries: Retries = new Retries("transparent");
