import type { DescMethod } from "@bufbuild/protobuf";
import { Code, type ConnectError } from "@connectrpc/connect";
import { maxTimerMs } from "@protoport/gateway/exchange";
import { type OptionNames, required } from "@protoport/gateway/options";
import { requireRange } from "../upstreams/index.ts";

const defaultBudget = { maxTokens: 100, tokenRatio: 0.1 };

/** A policy for retrying failed calls that the server may have processed (gRFC A6). */
export interface RetryPolicy {
  /** Maximum attempts for a call, from 2 to 5. The first attempt counts. */
  readonly maxAttempts: number;
  /** Delay before the second attempt in milliseconds, varied randomly by ±20 %. */
  readonly initialBackoffMs: number;
  /** Maximum delay before an attempt in milliseconds, before random variation. */
  readonly maxBackoffMs: number;
  /** Factor above 0 by which the delay is multiplied after each attempt. */
  readonly backoffMultiplier: number;
  /** The codes to retry, such as `Code.Unavailable`. */
  readonly retryableCodes: readonly Code[];
  /** Returns whether a method's calls may be processed twice. Default: true for all methods. */
  readonly methods?: (method: DescMethod) => boolean;
  /**
   * Limits retries for all calls together. Each failure removes one token, and each success adds `tokenRatio`, up to
   * `maxTokens`. No call is retried while at most half of `maxTokens` remain. By default, `maxTokens` is 100 and
   * `tokenRatio` is 0.1. If most calls fail, ten successes allow one retry.
   */
  readonly budget?: { readonly maxTokens: number; readonly tokenRatio: number };
}

/** The member names in {@link RetryPolicy}. */
export const retryPolicyNames: OptionNames<RetryPolicy> = {
  maxAttempts: required,
  initialBackoffMs: required,
  maxBackoffMs: required,
  backoffMultiplier: required,
  retryableCodes: required,
  methods: true,
  budget: defaultBudget,
};

/** A failed attempt, for {@link Retries}. */
export interface FailedAttempt {
  readonly method: DescMethod;
  readonly error: ConnectError;
  /** The field `grpc-retry-pushback-ms`, by which a server delays or forbids a retry, or `null` if absent. */
  readonly pushback: string | null;
  /** How many attempts were made so far. */
  readonly attempts: number;
  /** How many attempts were made since the server's last pushback. */
  readonly attemptsSincePushback: number;
}

/** Fraction by which delays vary randomly, so that callers do not retry at the same time. */
const jitter = 0.2;

/** Decides when a transport's calls are retried, with or without a policy. */
export class Retries {
  /** Whether calls that were certainly not processed are retried. */
  readonly retriesUnprocessed: boolean;
  readonly #policy: RetryPolicy | undefined;
  readonly #budget: { readonly maxTokens: number; readonly tokenRatio: number };
  #tokens: number;

  /** @throws RangeError for a number out of range */
  constructor(setting: RetryPolicy | "transparent" | "off") {
    this.retriesUnprocessed = setting !== "off";
    this.#policy = typeof setting === "string" ? undefined : setting;
    this.#budget = this.#policy?.budget ?? defaultBudget;
    this.#tokens = this.#budget.maxTokens;
    if (this.#policy !== undefined) requirePolicy(this.#policy, this.#budget);
  }

  /** Records that a call succeeded. */
  succeeded(): void {
    this.#tokens = Math.min(this.#tokens + this.#budget.tokenRatio, this.#budget.maxTokens);
  }

  /** Records that an attempt failed. @returns the milliseconds until the next attempt, or `undefined` for no retry */
  failed({ method, error, pushback, attempts, attemptsSincePushback }: FailedAttempt): number | undefined {
    const policy = this.#policy;
    if (policy === undefined) return undefined;
    const isRetryable = policy.retryableCodes.includes(error.code) && allows(policy, method);
    const pushbackMs = pushback === null ? undefined : readPushback(pushback);
    const forbidsRetry = pushback !== null && pushbackMs === undefined;
    // A failure whose pushback forbids a retry also counts (gRFC A6, "Throttling Retry Attempts").
    if (isRetryable || forbidsRetry) this.#tokens = Math.max(0, this.#tokens - 1);
    if (!isRetryable || forbidsRetry || attempts >= policy.maxAttempts) return undefined;
    if (this.#tokens <= this.#budget.maxTokens / 2) return undefined;
    if (pushbackMs !== undefined) return pushbackMs;
    const { initialBackoffMs, backoffMultiplier, maxBackoffMs } = policy;
    const backoffMs = Math.min(initialBackoffMs * backoffMultiplier ** (attemptsSincePushback - 1), maxBackoffMs);
    return backoffMs * (1 + jitter * (2 * Math.random() - 1));
  }
}

/** Returns whether a method's calls may be processed twice. A promise from `methods` does not count as true. */
function allows({ methods }: RetryPolicy, method: DescMethod): boolean {
  if (methods === undefined) return true;
  const isAllowed: unknown = methods(method);
  return isAllowed === true;
}

/** Returns the delay in milliseconds. Returns `undefined` for any other text, which forbids a retry (gRFC A6). */
function readPushback(text: string): number | undefined {
  const value = /^[0-9]{1,10}$/.test(text) ? Number(text) : maxTimerMs + 1;
  return value <= maxTimerMs ? value : undefined;
}

function requirePolicy(policy: RetryPolicy, budget: typeof defaultBudget): void {
  requireRange("retry.maxAttempts", policy.maxAttempts, 2, 5);
  requireRange("retry.initialBackoffMs", policy.initialBackoffMs, 1, maxTimerMs / 2);
  requireRange("retry.maxBackoffMs", policy.maxBackoffMs, 1, maxTimerMs / 2);
  requireRange("retry.backoffMultiplier", policy.backoffMultiplier, 0, Number.MAX_SAFE_INTEGER);
  if (policy.backoffMultiplier === 0) throw new RangeError("retry.backoffMultiplier must be above 0, got 0");
  requireRange("retry.retryableCodes.length", policy.retryableCodes.length, 1, 16);
  for (const code of policy.retryableCodes) requireRange("each of retry.retryableCodes", code, 1, 16);
  requireRange("retry.budget.maxTokens", budget.maxTokens, 1, 1_000);
  requireRange("retry.budget.tokenRatio", budget.tokenRatio, 0, 1_000);
}

/** Retries only calls that were certainly not processed. */
export const transparentRetries: Retries = new Retries("transparent");
