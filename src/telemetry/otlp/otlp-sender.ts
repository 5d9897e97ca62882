import { setTimeout as delay } from "node:timers/promises";
import type { OtlpTarget } from "./otlp-settings.ts";

/** The log to which failed exports are reported. */
export interface ExportLog {
  info(fields: object, message: string): void;
  warn(fields: object, message: string): void;
}

/** The most attempts to send a message, and the milliseconds before the second; doubled before each further one. */
const attemptsMax = 5;
const backOffMs = 1_000;

/** The longest wait that a collector may ask for, in milliseconds. */
const retryAfterMsMax = 30_000;

// The statuses after which OTLP's specification allows another attempt.
const worthRepeating: ReadonlySet<number> = new Set([429, 502, 503, 504]);

/**
 * Sends messages to a collector by OTLP over HTTP, in protobuf.
 *
 * Callers wait for the outcome, and bound what they collect meanwhile. The first failure and the recovery are
 * logged, not every failure.
 */
export class OtlpSender {
  readonly #target: OtlpTarget;
  readonly #signal: string;
  readonly #log: ExportLog;
  readonly #stopped = new AbortController();
  readonly #abandoned = new AbortController();
  #failing = false;

  /** @param signal - what is sent, for the log */
  constructor(target: OtlpTarget, signal: string, log: ExportLog) {
    this.#target = target;
    this.#signal = signal;
    this.#log = log;
  }

  /**
   * Sends a message, and repeats it where that may help. Never rejects; a message that cannot be delivered is lost.
   *
   * @returns whether the collector took it
   */
  async send(message: Uint8Array): Promise<boolean> {
    // A copy, because `fetch` takes no shared memory, and because TypeScript before 5.7 has no type that says so.
    const body = new Uint8Array(message);
    for (let attempt = 1; ; attempt++) {
      const outcome = await this.#post(body);
      this.#note(outcome === "delivered" ? undefined : outcome.problem);
      if (outcome === "delivered") return true;
      const isLast = attempt === attemptsMax || this.#stopped.signal.aborted;
      if (isLast || outcome.repeatAfterMs === undefined) return false;
      const waitMs = Math.max(outcome.repeatAfterMs, backOffMs * 2 ** (attempt - 1) * (0.5 + Math.random() / 2));
      await delay(waitMs, undefined, { ref: false, signal: this.#stopped.signal }).catch(() => undefined);
    }
  }

  /** Stops repeating: each message, also a later one, is attempted once more at most. */
  stop(): void {
    this.#stopped.abort();
  }

  /** Gives up the attempts under way, and lets later ones fail at once. */
  abandon(): void {
    this.#stopped.abort();
    this.#abandoned.abort(new Error("the collector did not answer before the server stopped"));
  }

  async #post(body: Uint8Array<ArrayBuffer>): Promise<"delivered" | Failure> {
    const { url, headers, timeoutMs } = this.#target;
    try {
      const answer = await fetch(url, {
        method: "POST",
        headers: { ...headers, "content-type": "application/x-protobuf" },
        body,
        redirect: "error",
        signal: AbortSignal.any([AbortSignal.timeout(timeoutMs), this.#abandoned.signal]),
      });
      // Not read: the body may be long, or never end.
      await answer.body?.cancel();
      if (answer.ok) return "delivered";
      const problem = `the collector answered ${answer.status}`;
      if (!worthRepeating.has(answer.status)) return { problem };
      const retryAfterS = Number(answer.headers.get("retry-after") ?? 0);
      return { problem, repeatAfterMs: Math.min(retryAfterMsMax, (retryAfterS || 0) * 1_000) };
    } catch (fault) {
      const cause = fault instanceof Error && fault.cause instanceof Error ? fault.cause : fault;
      return { problem: cause instanceof Error ? cause.message : String(cause), repeatAfterMs: 0 };
    }
  }

  #note(problem: string | undefined): void {
    const failing = problem !== undefined;
    if (failing === this.#failing) return;
    this.#failing = failing;
    const signal = this.#signal;
    if (failing) this.#log.warn({ signal, problem }, "telemetry cannot be exported");
    else this.#log.info({ signal }, "telemetry can be exported again");
  }
}

interface Failure {
  readonly problem: string;
  /** Milliseconds before it is worth trying again; `undefined` when it is not. */
  readonly repeatAfterMs?: number;
}
