import type { CompletedRequest } from "@plantstore/gateway";
import { toOneLine } from "@plantstore/http";
import type { Terminal } from "./terminal.ts";

/** Milliseconds in which a failure is logged at most once. An unreachable upstream may fail thousands of calls. */
const repeatAfterMs = 10_000;
/** Maximum distinct failures that are logged within {@link repeatAfterMs}. */
const failuresMax = 100;

/** Logs failures, each at most once in 10 seconds. */
export class FailureLog {
  readonly #terminal: Terminal;
  readonly #reportedCauses = new Set<string>();
  #windowStartMs = -Infinity;

  constructor(terminal: Terminal) {
    this.#terminal = terminal;
  }

  /** Logs why a call to an upstream failed. */
  logFailure({ error, procedure }: CompletedRequest): void {
    // An error without a cause is the upstream's status, which is for the caller and not for the log.
    if (error?.cause instanceof Error) this.write(`${procedure ?? "a request"}: ${describeCauses(error.cause)}`);
  }

  write(text: string): void {
    const now = performance.now();
    if (now - this.#windowStartMs > repeatAfterMs) {
      this.#windowStartMs = now;
      this.#reportedCauses.clear();
    }
    if (this.#reportedCauses.has(text) || this.#reportedCauses.size >= failuresMax) return;
    this.#reportedCauses.add(text);
    this.#terminal.err(text);
  }
}

/** Returns an error's messages and its causes, on one line. */
export function describeCauses(error: unknown): string {
  let text = "";
  // Reads at most five nested errors, which is more than any code in this package creates.
  for (let each = error, left = 5; each instanceof Error && left > 0; each = each.cause, left--) {
    if (!text.includes(each.message)) text += text === "" ? each.message : `: ${each.message}`;
  }
  return toOneLine(text.replaceAll(/\s+/g, " "));
}
