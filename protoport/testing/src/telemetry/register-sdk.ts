import { context, logs, metrics, propagation, trace } from "@opentelemetry/api";
import { NodeSDK, type NodeSDKConfiguration } from "@opentelemetry/sdk-node";
// oxfmt-ignore
import { AlwaysOnSampler, InMemorySpanExporter, ParentBasedSampler, type ReadableSpan, SimpleSpanProcessor
} from "@opentelemetry/sdk-trace";

/** A registered OpenTelemetry SDK. */
export type RegisteredSdk = Disposable & { readonly spans: readonly ReadableSpan[] };

/** Registers the OpenTelemetry SDK in this process until it is disposed of. `parts` replace the configuration. */
export function registerSdk(parts: Partial<NodeSDKConfiguration> = {}): RegisteredSdk {
  const exporter = new InMemorySpanExporter();
  // oxfmt-ignore
  const sdk = new NodeSDK({
    autoDetectResources: false, metricReaders: [], logRecordProcessors: [],
    sampler: new ParentBasedSampler({ root: new AlwaysOnSampler() }),
    spanProcessors: [new SimpleSpanProcessor({ exporter })], ...parts,
  });
  sdk.start();
  return {
    get spans() {
      return exporter.getFinishedSpans();
    },
    [Symbol.dispose]: () => [trace, logs, context, propagation, metrics].forEach((part) => part.disable()),
  };
}
