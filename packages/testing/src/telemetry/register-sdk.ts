import { context, logs, metrics, propagation, trace } from "@opentelemetry/api";
import { NodeSDK, type NodeSDKConfiguration } from "@opentelemetry/sdk-node";
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

/**
 * Registers OpenTelemetry's SDK in this process until it is disposed of, and keeps the spans that are recorded.
 *
 * @param parts - take the place of the parts that do so
 */
export function registerSdk(parts: Partial<NodeSDKConfiguration> = {}): RegisteredSdk {
  const exporter = new InMemorySpanExporter();
  const sdk = new NodeSDK({
    autoDetectResources: false,
    metricReaders: [],
    logRecordProcessors: [],
    sampler: new ParentBasedSampler({ root: new AlwaysOnSampler() }),
    spanProcessors: [new SimpleSpanProcessor({ exporter })],
    ...parts,
  });
  sdk.start();
  return {
    get spans() {
      return exporter.getFinishedSpans();
    },
    [Symbol.dispose]: () => [trace, logs, context, propagation, metrics].forEach((part) => part.disable()),
  };
}
