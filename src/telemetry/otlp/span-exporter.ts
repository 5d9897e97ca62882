import type { EndedSpan } from "../traces/span.ts";
import { writeSpans } from "./otlp-message.ts";
import type { OtlpSender } from "./otlp-sender.ts";
import type { OtlpSettings } from "./otlp-settings.ts";

/**
 * Exports spans in batches, in the background. Spans that find the queue full are dropped: calls never wait for a
 * collector, and one that is away costs no more memory than the queue and one batch.
 */
export class SpanExporter {
  readonly #sender: OtlpSender;
  readonly #settings: OtlpSettings;
  readonly #timer: NodeJS.Timeout;
  #queue: EndedSpan[] = [];
  #sending: Promise<void> | undefined;
  #dropped = 0;

  constructor(sender: OtlpSender, settings: OtlpSettings) {
    this.#sender = sender;
    this.#settings = settings;
    this.#timer = setInterval(() => this.#export(), settings.spanDelayMs).unref();
  }

  /** Spans that found the queue full. */
  get dropped(): number {
    return this.#dropped;
  }

  /** Takes a span that has ended. */
  take(span: EndedSpan): void {
    if (this.#queue.length >= this.#settings.spanQueueMax) return void (this.#dropped += 1);
    this.#queue.push(span);
    if (this.#queue.length >= this.#settings.spanBatchMax) this.#export();
  }

  /** Sends what waits, once, and stops. */
  async close(): Promise<void> {
    clearInterval(this.#timer);
    this.#sender.stop();
    await this.#sending;
    while (this.#queue.length > 0) await this.#sender.send(this.#takeBatch());
  }

  #export(): void {
    // One at a time: a slow collector gets larger batches, not more requests.
    if (this.#sending !== undefined || this.#queue.length === 0) return;
    this.#sending = this.#sender.send(this.#takeBatch()).finally(() => {
      this.#sending = undefined;
      if (this.#queue.length >= this.#settings.spanBatchMax) this.#export();
    });
  }

  #takeBatch(): Uint8Array<ArrayBuffer> {
    const batch = this.#queue.splice(0, this.#settings.spanBatchMax);
    return new Uint8Array(writeSpans(this.#settings.resource, batch));
  }
}
