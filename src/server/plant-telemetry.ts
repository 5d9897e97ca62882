import type { Log } from "@protoport/telemetry/logs";
import type { OnBatch, StoreLocation } from "../stores/index.ts";
import type { Tracing } from "@protoport/telemetry/opentelemetry";
import { startSdk } from "./opentelemetry-sdk.ts";
import { isSdkRegistered } from "./opentelemetry-variables.ts";
import { commitAttributes, PlantMetrics } from "./plant-metrics.ts";
import type { PlantServerOptions } from "./plant-server-options.ts";

/** A plant server's metrics and traces. Traces require an OpenTelemetry SDK. */
export interface PlantTelemetry extends AsyncDisposable {
  readonly hooks: Pick<PlantServerOptions, "onRequest" | "onResponse" | "interceptors" | "logFields">;
  readonly onBatch: OnBatch;
  readonly metrics: PlantMetrics;
}

/**
 * Starts collecting metrics and traces. If the OpenTelemetry variables request an export, exports metrics and traces.
 * If an SDK is already registered, the registered SDK gets the traces.
 *
 * @param serviceVersion - the server's version; if undefined, the OpenTelemetry variables are ignored
 * @throws ConfigurationError if a required SDK cannot be started
 */
export async function openPlantTelemetry(
  database: StoreLocation["kind"],
  serviceVersion: string | undefined,
  log: Log,
): Promise<PlantTelemetry> {
  await using started = new AsyncDisposableStack();
  const metrics = started.use(new PlantMetrics(database));
  if (serviceVersion !== undefined) {
    metrics.addBuildInfo(serviceVersion);
    const sdk = startSdk(serviceVersion, () => metrics.collect(), log);
    started.defer(async () => sdk?.close());
  }
  const isTraced = serviceVersion !== undefined && isSdkRegistered();
  const hooks = isTraced
    ? tracedHooks(await import("@protoport/telemetry/opentelemetry"), metrics, database)
    : { hooks: { onResponse: metrics.onResponse }, onBatch: metrics.onBatch };
  const toStop = started.move();
  return { ...hooks, metrics, [Symbol.asyncDispose]: () => toStop.disposeAsync() };
}

function tracedHooks(
  { createTracing, traceIdsOf }: typeof import("@protoport/telemetry/opentelemetry"),
  metrics: PlantMetrics,
  database: StoreLocation["kind"],
): Pick<PlantTelemetry, "hooks" | "onBatch"> {
  const tracing = createTracing({ anonymous: true });
  return {
    hooks: {
      onRequest: tracing.onRequest,
      interceptors: [tracing.interceptor],
      onResponse: (request) => {
        metrics.onResponse(request);
        tracing.onResponse(request);
      },
      logFields: (contextValues) => traceIdsOf(contextValues) ?? {},
    },
    onBatch: tracedBatches(tracing, metrics, database),
  };
}

function tracedBatches(tracing: Tracing, metrics: PlantMetrics, database: StoreLocation["kind"]): OnBatch {
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
