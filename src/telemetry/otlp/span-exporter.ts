import type { EndedSpan } from "../traces/span.ts";
import { writeSpans } from "./otlp-message.ts";
import type { OtlpSender } from "./otlp-sender.ts";
import type { OtlpSettings } from "./otlp-settings.ts";

/**
 * Exports spans in batches, in the background. Spans that find the queue full are dropped: calls never wait for a
 * collector, and one that does not answer costs no more memory than the queue and one batch.
 */
export class SpanExporter {
  readonly #sender: OtlpSender;
  readonly #settings: OtlpSettings;
  readonly #timer: NodeJS.Timeout;
  #queue: EndedSpan[] = [];
  #sending: Promise<void> | undefined;
  readonly #dropped = { queue_full: 0, not_taken: 0 };

  constructor(sender: OtlpSender, settings: OtlpSettings) {
    this.#sender = sender;
    this.#settings = settings;
    this.#timer = setInterval(() => this.#export(), settings.spanDelayMs).unref();
  }

  /** The numbers of lost spans: those that found the queue full, and those that the collector did not take. */
  get dropped(): Readonly<Record<"queue_full" | "not_taken", number>> {
    return this.#dropped;
  }

  /** Takes a span that has ended. */
  take(span: EndedSpan): void {
    if (this.#queue.length >= this.#settings.spanQueueMax) return void (this.#dropped.queue_full += 1);
    this.#queue.push(span);
    if (this.#queue.length >= this.#settings.spanBatchMax) this.#export();
  }

  /** Sends the waiting spans, each once, with those that are taken meanwhile, and stops. */
  async close(): Promise<void> {
    clearInterval(this.#timer);
    this.#sender.stop();
    while (this.#sending !== undefined || this.#queue.length > 0) {
      this.#export();
      await this.#sending;
    }
  }

  #export(): void {
    // One at a time: a slow collector gets larger batches, not more requests.
    if (this.#sending !== undefined || this.#queue.length === 0) return;
    this.#sending = this.#sendBatch().finally(() => {
      this.#sending = undefined;
      if (this.#queue.length >= this.#settings.spanBatchMax) this.#export();
    });
  }

  async #sendBatch(): Promise<void> {
    const batch = this.#queue.splice(0, this.#settings.spanBatchMax);
    const isTaken = await this.#sender.send(writeSpans(this.#settings.resource, batch));
    if (!isTaken) this.#dropped.not_taken += batch.length;
  }
}
