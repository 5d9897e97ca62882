import type { ServerInterceptingCallInterface } from "@grpc/grpc-js";

type GrpcJsRecorder = ReturnType<ServerInterceptingCallInterface["getMetricsRecorder"]>;

/** Discards a call's metrics, as grpc-js does by default. */
export class MetricsRecorder implements Record<keyof GrpcJsRecorder, () => unknown> {
  recordRequestCostMetric(): void {}
  recordUtilizationMetric(): void {}
  recordNamedMetric(): void {}
  recordCPUUtilizationMetric(): void {}
  recordMemoryUtilizationMetric(): void {}
  recordApplicationUtilizationMetric(): void {}
  recordQpsMetric(): void {}
  recordEpsMetric(): void {}

  serialize(): Buffer {
    return Buffer.alloc(0);
  }
}
