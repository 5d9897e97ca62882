import type { AnsweredRequest } from "@plantstore/gateway";
import type { Terminal } from "./terminal.ts";

/** Milliseconds in which a failure is reported once. 10 s: an upstream that is gone fails thousands of calls. */
const failureEveryMs = 10_000;
/** Failures that are told apart in that time. */
const failuresMax = 100;

/** Tells of failures, each once in a while. */
export class FailureLog {
  readonly #terminal: Terminal;
  readonly #reported = new Set<string>();
  #since = -Infinity;

  constructor(terminal: Terminal) {
    this.#terminal = terminal;
  }

  /** Tells why an upstream has not answered as it should. */
  answered({ error, procedure }: AnsweredRequest): void {
    // What the upstream itself says is the caller's to know.
    if (error?.cause instanceof Error) this.write(`${procedure ?? "a request"}: ${causesOf(error.cause)}`);
  }

  write(text: string): void {
    const now = performance.now();
    if (now - this.#since > failureEveryMs) {
      this.#since = now;
      this.#reported.clear();
    }
    if (this.#reported.has(text) || this.#reported.size >= failuresMax) return;
    this.#reported.add(text);
    this.#terminal.complain(text);
  }
}

/** Returns what an error and its causes say, on one line. */
export function causesOf(error: unknown): string {
  let text = "";
  // Five: whoever wraps more often says nothing new.
  for (let each = error, left = 5; each instanceof Error && left > 0; each = each.cause, left--) {
    if (!text.includes(each.message)) text += text === "" ? each.message : `: ${each.message}`;
  }
  return text.replaceAll(/\s+/g, " ");
}
