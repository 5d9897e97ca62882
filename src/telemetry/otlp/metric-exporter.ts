import type { MetricFamily } from "../metrics/metric-family.ts";
import { nowMs } from "../traces/span.ts";
import { writeMetrics } from "./otlp-message.ts";
import type { OtlpSender } from "./otlp-sender.ts";
import type { OtlpSettings } from "./otlp-settings.ts";

/** Exports metrics at intervals. Sums are cumulative, so a lost export loses one moment, and no counts. */
export class MetricExporter {
  readonly #sender: OtlpSender;
  readonly #settings: OtlpSettings;
  readonly #collect: () => readonly MetricFamily[];
  readonly #timer: NodeJS.Timeout;
  readonly #startMs = nowMs();
  #sending: Promise<boolean> | undefined;

  constructor(sender: OtlpSender, settings: OtlpSettings, collect: () => readonly MetricFamily[]) {
    this.#sender = sender;
    this.#settings = settings;
    this.#collect = collect;
    this.#timer = setInterval(() => void this.#export().catch(warn), settings.metricIntervalMs).unref();
  }

  /** Sends the metrics a last time, and stops. Never rejects. */
  async close(): Promise<void> {
    clearInterval(this.#timer);
    this.#sender.stop();
    await this.#sending;
    await this.#export().catch(warn);
  }

  async #export(): Promise<void> {
    if (this.#sending !== undefined) return;
    const times = { startMs: this.#startMs, nowMs: nowMs() };
    this.#sending = this.#sender.send(writeMetrics(this.#settings.resource, this.#collect(), times));
    await this.#sending;
    this.#sending = undefined;
  }
}

/** Reports the fault of a gauge that throws, which must not end the process. */
function warn(fault: unknown): void {
  process.emitWarning(fault instanceof Error ? fault : String(fault));
}
