import { randomUUID } from "node:crypto";
import { createRequire } from "node:module";
import { hostname } from "node:os";
import { join, sep } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import type { ResourceMetrics } from "@opentelemetry/sdk-metrics";
import type { Log } from "@protoport/telemetry/logs";
import { createMetricProducer, type MetricFamily } from "@protoport/telemetry/metrics";
import type { PlantErrorCode } from "../service/index.ts";
import { ConfigurationError } from "./configuration-error.ts";
import { isSdkRegistered, requestedSignals } from "./opentelemetry-variables.ts";

// Interval at which a lasting problem is logged again, such as a collector that is down, in milliseconds.
const repeatAfterMs = 60_000;

interface Sdk {
  /** Exports the remaining telemetry within two seconds. Unregisters the SDK from the process. Never rejects. */
  close(): Promise<void>;
  /** Unregisters the SDK from the process without another export. */
  unregister(): void;
}

// Timeout for the last export when the server stops, in milliseconds. Short, in case a collector is unreachable.
const lastExportMs = 2_000;

/**
 * Loads and starts the OpenTelemetry SDK, which itself reads the environment variables. Returns `undefined` if they
 * request no export.
 *
 * @throws ConfigurationError if the SDK is not installed, or cannot be started
 */
export function startSdk(serviceVersion: string, collect: Collect, log: Pick<Log, "warn">): Sdk | undefined {
  const signals = requestedSignals(process.env);
  if (signals.size === 0) return undefined;
  const load = findSdk();
  const api: typeof import("@opentelemetry/api") = load("@opentelemetry/api");
  let last = { problem: "", atMs: 0 };
  const report = (message: string): void => {
    // Logs only the first line, because some SDK messages contain a stack trace.
    const [problem = ""] = message.split("\n", 1);
    const atMs = performance.now();
    if (problem === last.problem && atMs - last.atMs < repeatAfterMs) return;
    last = { problem, atMs };
    log.warn({ errorCode: "ERR_TELEMETRY" satisfies PlantErrorCode, problem }, "OpenTelemetry reports a problem");
  };
  const logger = { error: report, warn: report, info: ignore, debug: ignore, verbose: ignore };
  // If an SDK is already registered, other code in the process owns the APIs.
  const ownApis = isSdkRegistered() ? [] : [api.trace, api.logs, api.context, api.propagation, api.diag];
  if (ownApis.length > 0)
    api.diag.setLogger(logger, { logLevel: api.DiagLogLevel.WARN, suppressOverrideMessage: true });
  const unregister = (): void => ownApis.forEach((part) => part.disable());
  const parts: { shutdown(): Promise<void> }[] = [];
  try {
    const core: typeof import("@opentelemetry/core") = load("@opentelemetry/core");
    core.setGlobalErrorHandler((reason) => report(reason instanceof Error ? reason.message : JSON.stringify(reason)));
    const resource = createResource(load, serviceVersion);
    if (signals.has("metrics")) parts.push(startMetrics(load, resource, collect, report));
    if (signals.has("traces")) parts.push(startTraces(load, resource));
  } catch (cause) {
    for (const part of parts) void part.shutdown().catch(ignore);
    unregister();
    throw new ConfigurationError([`cannot start the OpenTelemetry SDK: ${String(cause)}`]);
  }
  return {
    unregister,
    close: async () => {
      const timeout = new AbortController();
      const stopped = Promise.all(parts.map((part) => part.shutdown())).catch((reason) => report(String(reason)));
      await Promise.race([stopped, delay(lastExportMs, undefined, { signal: timeout.signal }).catch(ignore)]);
      timeout.abort();
      unregister();
    },
  };
}

const ignore = (): void => undefined;

type Collect = () => readonly MetricFamily[];

/** Loads a dependency of the SDK. The package is resolved from the SDK's location. */
type Load = NodeJS.Require;

function findSdk(): Load {
  try {
    return createRequire(createRequire(import.meta.filename).resolve("@opentelemetry/sdk-node"));
  } catch {
    // npm installs into the working directory, but the server does not search the working directory.
    const [folder = ""] = import.meta.dirname.split(`${sep}node_modules${sep}`);
    throw new ConfigurationError([
      `the OTEL_… variables request an export, but the OpenTelemetry SDK is not installed in ${join(folder, "node_modules")}; ` +
        'run "npm install @opentelemetry/api @opentelemetry/sdk-node"',
    ]);
  }
}

function createResource(load: Load, serviceVersion: string): ResourceMetrics["resource"] {
  const sdk: typeof import("@opentelemetry/resources") = load("@opentelemetry/resources");
  // Does not use the SDK's detection, because the SDK would export the command line, which may contain a password.
  const ownResource = sdk.resourceFromAttributes({
    "service.name": "plantstore",
    "service.version": serviceVersion,
    "service.instance.id": randomUUID(),
    "host.name": hostname(),
    "process.pid": process.pid,
  });
  return sdk
    .defaultResource()
    .merge(ownResource)
    .merge(sdk.detectResources({ detectors: [sdk.envDetector] }));
}

function startTraces(load: Load, resource: ResourceMetrics["resource"]): { shutdown(): Promise<void> } {
  const { NodeSDK }: typeof import("@opentelemetry/sdk-node") = load("@opentelemetry/sdk-node");
  const sdk = new NodeSDK({ resource, autoDetectResources: false, metricReaders: [], logRecordProcessors: [] });
  sdk.start();
  return sdk;
}

function startMetrics(
  load: Load,
  resource: ResourceMetrics["resource"],
  collect: Collect,
  report: (problem: string) => void,
): { shutdown(): Promise<void> } {
  const sdk: typeof import("@opentelemetry/sdk-metrics") = load("@opentelemetry/sdk-metrics");
  const { getNumberFromEnv }: typeof import("@opentelemetry/core") = load("@opentelemetry/core");
  const exporter = process.env["OTEL_METRICS_EXPORTER"] || "otlp";
  if (exporter !== "otlp") report(`OTEL_METRICS_EXPORTER must be otlp or none, got ${exporter}; using otlp`);
  const protocol = process.env["OTEL_EXPORTER_OTLP_METRICS_PROTOCOL"] || process.env["OTEL_EXPORTER_OTLP_PROTOCOL"];
  const name = { grpc: "grpc", "http/json": "http" }[protocol ?? ""] ?? "proto";
  const { OTLPMetricExporter }: typeof import("@opentelemetry/exporter-metrics-otlp-proto") = load(
    `@opentelemetry/exporter-metrics-otlp-${name}`,
  );
  const exportIntervalMillis = Math.min(getNumberFromEnv("OTEL_METRIC_EXPORT_INTERVAL") ?? 60_000, maxTimerMs);
  const reader = new sdk.PeriodicExportingMetricReader({
    exporter: new OTLPMetricExporter(),
    exportIntervalMillis,
    exportTimeoutMillis: Math.min(exportIntervalMillis, getNumberFromEnv("OTEL_METRIC_EXPORT_TIMEOUT") ?? 30_000),
    metricProducers: [createMetricProducer("plantstore", resource, collect)],
  });
  // Does not register the provider globally, because other code in the process may have registered a provider.
  return new sdk.MeterProvider({ resource, readers: [reader] });
}

/** The maximum Node.js timer delay, in milliseconds. A longer delay would be none. */
const maxTimerMs = 2 ** 31 - 1;
