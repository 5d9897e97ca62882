import type { ContextValues } from "@connectrpc/connect";
import type { Log } from "../operations/index.ts";
import type { OnBatch } from "../plants/index.ts";
import {
  createSampler,
  createTracing,
  MetricExporter,
  OtlpSender,
  type OtlpTarget,
  readOtlpSettings,
  SpanExporter,
  traceKey,
  type Tracing,
} from "../telemetry/index.ts";
import type { Database } from "./database-url.ts";
import { commitAttributes, PlantMetrics } from "./plant-metrics.ts";
import type { PlantServerOptions } from "./plant-server-options.ts";

/** The environment variables of OpenTelemetry, by name. */
export type OpenTelemetryVariables = Readonly<Record<string, string | undefined>>;

/** Milliseconds that the last export may take when the server stops, which a dead collector must not hold up. */
const lastExportMs = 2_000;

/** The telemetry of a plant server: its metrics, and its traces where they are exported. */
export class PlantTelemetry implements AsyncDisposable {
  readonly hooks: Pick<PlantServerOptions, "onRequest" | "onAnswer" | "interceptors" | "logFields">;
  readonly onBatch: OnBatch;
  readonly metrics: PlantMetrics;
  readonly #senders: OtlpSender[] = [];
  readonly #exporters: { close(): Promise<void> }[] = [];

  constructor(database: Database["kind"], variables: OpenTelemetryVariables, log: Log) {
    const settings = readOtlpSettings(variables);
    for (const problem of settings.problems) log.warn({ problem }, "a variable of OpenTelemetry is not understood");
    const metrics = new PlantMetrics(database);
    this.metrics = metrics;
    if (settings.metrics !== undefined) {
      const sender = this.#openSender(settings.metrics, "metrics", log);
      this.#exporters.push(new MetricExporter(sender, settings, () => metrics.collect()));
    }
    if (settings.traces === undefined) {
      this.hooks = { onAnswer: metrics.onAnswer };
      this.onBatch = metrics.onBatch;
      return;
    }
    const exporter = new SpanExporter(this.#openSender(settings.traces, "traces", log), settings);
    this.#exporters.push(exporter);
    metrics.watchSpans(exporter);
    const sampler = createSampler(settings.sampler, settings.samplerRatio);
    const tracing = createTracing({ sampler, take: (span) => exporter.take(span) });
    this.hooks = tracedHooks(tracing, metrics);
    this.onBatch = tracedBatches(tracing, metrics, database);
  }

  /** Exports what is left, for {@link lastExportMs} at most. */
  async [Symbol.asyncDispose](): Promise<void> {
    const outOfTime = setTimeout(() => this.#senders.forEach((sender) => sender.abandon()), lastExportMs);
    await Promise.all(this.#exporters.map((exporter) => exporter.close()));
    clearTimeout(outOfTime);
    this.metrics[Symbol.dispose]();
  }

  #openSender(target: OtlpTarget, signal: string, log: Log): OtlpSender {
    const sender = new OtlpSender(target, signal, log);
    this.#senders.push(sender);
    return sender;
  }
}

function tracedHooks(tracing: Tracing, metrics: PlantMetrics): PlantTelemetry["hooks"] {
  return {
    onRequest: tracing.onRequest,
    interceptors: [tracing.interceptor],
    onAnswer: (answer) => {
      metrics.onAnswer(answer);
      tracing.onAnswer(answer);
    },
    logFields,
  };
}

function logFields(contextValues: ContextValues): object {
  const trace = contextValues.get(traceKey);
  return trace === undefined ? {} : { traceId: trace.context.traceId, spanId: trace.context.spanId };
}

function tracedBatches(tracing: Tracing, metrics: PlantMetrics, database: Database["kind"]): OnBatch {
  const attributes = commitAttributes(database);
  return (calls) => {
    const count = metrics.onBatch(calls);
    const end = tracing.startShared({
      name: "DELETE plants",
      attributes: calls.length === 1 ? attributes : { ...attributes, "db.operation.batch.size": calls.length },
      requests: calls.map(({ context }) => context.values),
    });
    return (error) => {
      count(error);
      end(error);
    };
  };
}
