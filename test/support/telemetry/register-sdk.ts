import { context, logs, propagation, trace } from "@opentelemetry/api";
import { NodeSDK } from "@opentelemetry/sdk-node";
import {
  AlwaysOnSampler,
  InMemorySpanExporter,
  ParentBasedSampler,
  type ReadableSpan,
  SimpleSpanProcessor,
} from "@opentelemetry/sdk-trace";

/** An SDK that a program has registered. */
export interface RegisteredSdk extends Disposable {
  /** The spans that have ended, in this order. */
  readonly spans: readonly ReadableSpan[];
}

/** Registers OpenTelemetry's SDK in this process until it is disposed of, and keeps the spans that are recorded. */
export function registerSdk(): RegisteredSdk {
  const exporter = new InMemorySpanExporter();
  const sdk = new NodeSDK({
    autoDetectResources: false,
    metricReaders: [],
    logRecordProcessors: [],
    sampler: new ParentBasedSampler({ root: new AlwaysOnSampler() }),
    spanProcessors: [new SimpleSpanProcessor({ exporter })],
  });
  sdk.start();
  return {
    get spans() {
      return exporter.getFinishedSpans();
    },
    [Symbol.dispose]: () => [trace, logs, context, propagation].forEach((part) => part.disable()),
  };
}
