import type { CommandOutput } from "@protoport/command-line";
import type { CompletedRequest } from "@protoport/gateway";
import { toOneLine } from "@protoport/gateway/errors";

/** Milliseconds within which an event is logged at most once. An unreachable upstream may fail thousands of calls. */
const eventMs = 10_000;
/** Maximum number of distinct events that are logged within {@link eventMs}. */
const maxEvents = 100;
/** Milliseconds after which a lasting problem is logged again, so that each hour's log includes the problem. */
const noticeRepeatMs = 600_000;
/** Maximum number of lines that a change of a state adds. Servers may offer any number of names, and a metric counts conflicts. */
const maxLines = 20;

/** Logs for the operator: each event at most once in ten seconds, and each state when it changes. */
export class Notices {
  readonly #err: CommandOutput["err"];
  readonly #events = new Set<string>();
  #windowStartMs = -Infinity;
  readonly #states = new Map<string, ReadonlySet<string>>();
  readonly #repeats = new Map<string, NodeJS.Timeout>();

  constructor({ err }: CommandOutput) {
    this.#err = err;
  }

  /** Logs why a call to an upstream failed. */
  failure({ error, procedure }: CompletedRequest): void {
    // An error without a cause is the upstream's status, which is for the caller and not for the log.
    if (error?.cause instanceof Error) this.event(`${procedure ?? "a request"}: ${describeCauses(error.cause)}`);
  }

  /** Logs an event, unless the last ten seconds had the same event or too many others. */
  event(text: string): void {
    const now = performance.now();
    if (now - this.#windowStartMs > eventMs) {
      this.#windowStartMs = now;
      this.#events.clear();
    }
    if (this.#events.has(text) || this.#events.size >= maxEvents) return;
    this.#events.add(text);
    this.#err(text);
  }

  /** Logs a problem when it changes, and every ten minutes while it lasts. `undefined` ends the problem. Never dropped. */
  problem(name: string, text: string | undefined): void {
    if (!this.state(name, text === undefined ? [] : [text], "")) return;
    clearInterval(this.#repeats.get(name));
    if (text !== undefined) this.#repeats.set(name, setInterval(() => this.#err(text), noticeRepeatMs).unref());
  }

  /**
   * Logs the lines that a state did not have before, and the number of the lines over the limit.
   *
   * @param others - the text after this number
   * @returns whether the state has changed
   */
  state(name: string, lines: readonly string[], others: string): boolean {
    const before = this.#states.get(name) ?? new Set();
    const added = lines.filter((line) => !before.has(line));
    this.#states.set(name, new Set(lines));
    for (const line of added.slice(0, maxLines)) this.#err(line);
    if (added.length > maxLines) this.#err(`${name}: ${added.length - maxLines} ${others}`);
    return added.length > 0 || lines.length < before.size;
  }

  /** Returns whether a problem lasts. */
  has(name: string): boolean {
    return (this.#states.get(name)?.size ?? 0) > 0;
  }

  /** Stops repeating problems. */
  close(): void {
    for (const repeat of this.#repeats.values()) clearInterval(repeat);
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
