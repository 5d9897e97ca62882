import { randomUUID } from "node:crypto";
import { accessSync, constants } from "node:fs";
import { createRequire } from "node:module";
import { hostname } from "node:os";
import { join, sep } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import type { ResourceMetrics } from "@opentelemetry/sdk-metrics";
import type { Log } from "@protoport/telemetry/logs";
import type { MetricFamily } from "@protoport/telemetry/metrics";
import type { PlantErrorCode } from "../service/index.ts";
import { ConfigurationError } from "./configuration-error.ts";
import { createMetricProducer } from "./metric-producer.ts";
import { alternatives } from "./setting-types.ts";

/** Environment variables, by name. */
type Environment = Readonly<Record<string, string | undefined>>;

type Signal = "traces" | "metrics";

/** Options for {@link startSdk}. */
export interface SdkOptions {
  readonly signals: ReadonlySet<Signal>;
  /** The server's version. */
  readonly serviceVersion: string;
  /** Returns the current metrics. */
  readonly collect: () => readonly MetricFamily[];
  /** The log for invalid variables, and for exports that begin to fail or work again. */
  readonly log: Pick<Log, "info" | "warn">;
}

/** The running SDK. */
export interface Sdk {
  /** Exports the remaining telemetry within two seconds. Unregisters the SDK from the process. Never rejects. */
  close(): Promise<void>;
  /** Unregisters the SDK from the process without another export. */
  unregister(): void;
}

// Timeout for the last export when the server stops, in milliseconds. Short, in case a collector is unreachable.
const lastExportMs = 2_000;

/** Returns whether another program in the process has already registered an SDK for traces. */
export function isSdkRegistered(): boolean {
  // All copies of the OpenTelemetry API in a process share this global registry.
  const registered: unknown = Reflect.get(globalThis, Symbol.for("opentelemetry.js.api.1"));
  return typeof registered === "object" && registered !== null && "trace" in registered;
}

/** The signals that the OpenTelemetry variables request, without traces if other code has registered an SDK. */
export function requestedSignals(environment: Environment): ReadonlySet<Signal> {
  if (environment["OTEL_SDK_DISABLED"]?.toLowerCase() === "true") return new Set();
  const isRequested = (signal: Signal): boolean => {
    const exporter = environment[`OTEL_${signal.toUpperCase()}_EXPORTER`];
    if (exporter !== undefined && exporter !== "") return exporter !== "none";
    return Boolean(
      environment[`OTEL_EXPORTER_OTLP_${signal.toUpperCase()}_ENDPOINT`] || environment["OTEL_EXPORTER_OTLP_ENDPOINT"],
    );
  };
  const signals = isSdkRegistered() ? (["metrics"] as const) : (["traces", "metrics"] as const);
  return new Set(signals.filter(isRequested));
}

const telemetryCode: PlantErrorCode = "ERR_TELEMETRY";

/**
 * Loads and starts the OpenTelemetry SDK. The SDK itself reads the environment variables.
 *
 * @throws ConfigurationError if the SDK is not installed, or cannot be started
 */
export function startSdk({ signals, serviceVersion, collect, log }: SdkOptions): Sdk {
  const load = findSdk();
  const api: typeof import("@opentelemetry/api") = load("@opentelemetry/api");
  // Logs only the first line, because some SDK messages contain a stack trace.
  const report = (message: string): void =>
    log.warn({ errorCode: telemetryCode, problem: message.split("\n", 1)[0] }, "OpenTelemetry reports a problem");
  const logger = { error: report, warn: report, info: ignoreProblem, debug: ignoreProblem, verbose: ignoreProblem };
  // If an SDK is already registered, other code in the process owns the APIs.
  const ownApis = isSdkRegistered() ? [] : [api.trace, api.logs, api.context, api.propagation, api.diag];
  if (ownApis.length > 0)
    api.diag.setLogger(logger, { logLevel: api.DiagLogLevel.WARN, suppressOverrideMessage: true });
  const unregister = (): void => ownApis.forEach((part) => part.disable());
  const parts: { shutdown(): Promise<void> }[] = [];
  try {
    reportUnsupported(load, report);
    const start: SdkStart = { load, resource: createResource(load, serviceVersion, report), log, report };
    if (signals.has("metrics")) parts.push(startMetrics(start, collect));
    if (signals.has("traces")) parts.push(startTraces(start));
  } catch (cause) {
    for (const part of parts) void part.shutdown().catch(ignoreProblem);
    unregister();
    throw new ConfigurationError([`cannot start the OpenTelemetry SDK: ${String(cause)}`]);
  }
  return {
    unregister,
    close: async () => {
      const timeout = new AbortController();
      const stopped = Promise.all(parts.map((part) => part.shutdown())).catch((reason) => report(String(reason)));
      await Promise.race([stopped, delay(lastExportMs, undefined, { signal: timeout.signal }).catch(() => undefined)]);
      timeout.abort();
      unregister();
    },
  };
}

/** Loads a dependency of the SDK. The package is resolved from the SDK's location. */
type Load = NodeJS.Require;

/** The parameters to start traces or metrics. */
interface SdkStart {
  readonly load: Load;
  readonly resource: ResourceMetrics["resource"];
  readonly log: SdkOptions["log"];
  readonly report: (problem: string) => void;
}

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

function createResource(load: Load, serviceVersion: string, report: SdkStart["report"]): ResourceMetrics["resource"] {
  const sdk: typeof import("@opentelemetry/resources") = load("@opentelemetry/resources");
  // Does not use the SDK's detection, because the SDK would export the command line, which may contain a password.
  const ownResource = sdk.resourceFromAttributes({
    "service.name": "plantstore",
    "service.version": serviceVersion,
    "service.instance.id": randomUUID(),
    "host.name": hostname(),
    "process.pid": process.pid,
  });
  const configured = sdk.detectResources({ detectors: [sdk.envDetector] });
  // The SDK ignores all attributes if a single attribute is malformed.
  const { attributes = {} } = sdk.resourceAttributesEnvDetector.detect();
  if (process.env["OTEL_RESOURCE_ATTRIBUTES"]?.trim() && Object.keys(attributes).length === 0)
    report("ignoring OTEL_RESOURCE_ATTRIBUTES: it must be a comma-separated list of name=value");
  return sdk.defaultResource().merge(ownResource).merge(configured);
}

function startTraces({ load, resource, log, report }: SdkStart): { shutdown(): Promise<void> } {
  const { NodeSDK }: typeof import("@opentelemetry/sdk-node") = load("@opentelemetry/sdk-node");
  const { OTLPTraceExporter }: typeof import("@opentelemetry/exporter-trace-otlp-proto") = load(
    otlpPackage("traces", "@opentelemetry/exporter-trace-otlp-", report),
  );
  // The SDK itself creates any exporter other than OTLP.
  const isOtlp = (process.env["OTEL_TRACES_EXPORTER"] || "otlp") === "otlp";
  const sdk = new NodeSDK({
    resource,
    autoDetectResources: false,
    metricReaders: [],
    logRecordProcessors: [],
    ...(isOtlp && { traceExporter: logOutcomes(new OTLPTraceExporter(), "traces", log) }),
  });
  sdk.start();
  return sdk;
}

function startMetrics(
  { load, resource, log, report }: SdkStart,
  collect: SdkOptions["collect"],
): { shutdown(): Promise<void> } {
  const sdk: typeof import("@opentelemetry/sdk-metrics") = load("@opentelemetry/sdk-metrics");
  const { OTLPMetricExporter }: typeof import("@opentelemetry/exporter-metrics-otlp-proto") = load(
    otlpPackage("metrics", "@opentelemetry/exporter-metrics-otlp-", report),
  );
  const exportIntervalMillis = readMs("OTEL_METRIC_EXPORT_INTERVAL", 60_000, report);
  const reader = new sdk.PeriodicExportingMetricReader({
    exporter: logOutcomes(new OTLPMetricExporter(), "metrics", log),
    exportIntervalMillis,
    exportTimeoutMillis: Math.min(exportIntervalMillis, readMs("OTEL_METRIC_EXPORT_TIMEOUT", 30_000, report)),
    metricProducers: [createMetricProducer(resource, collect)],
  });
  // Does not register the provider globally, because other code in the process may have registered a provider.
  return new sdk.MeterProvider({ resource, readers: [reader] });
}

const protocolPackages = new Map([
  ["http/protobuf", "proto"],
  ["http/json", "http"],
  ["grpc", "grpc"],
]);

/** Returns the package that exports a signal with the configured protocol. */
function otlpPackage(signal: Signal, prefix: string, report: SdkStart["report"]): string {
  const variables = [`OTEL_EXPORTER_OTLP_${signal.toUpperCase()}_PROTOCOL`, "OTEL_EXPORTER_OTLP_PROTOCOL"];
  const variable = variables.find((name) => process.env[name]);
  const protocol = (variable && process.env[variable]) ?? "http/protobuf";
  const packageSuffix = protocolPackages.get(protocol.trim());
  if (packageSuffix === undefined) {
    const names = alternatives([...protocolPackages.keys()]);
    report(
      `${variable} must be one of ${names}, got ${JSON.stringify(protocol)}; exporting ${signal} by http/protobuf`,
    );
  }
  return prefix + (packageSuffix ?? "proto");
}

// OpenTelemetry variables that the server does not support, each with the values that match the server's behavior.
const unsupportedVariables: readonly (readonly [name: string, ...supported: string[]])[] = [
  ["OTEL_CONFIG_FILE"],
  ["OTEL_LOGS_EXPORTER", "none"],
  ["OTEL_METRICS_EXPORTER", "otlp", "none"],
  ["OTEL_EXPORTER_OTLP_METRICS_TEMPORALITY_PREFERENCE", "cumulative"],
  ["OTEL_NODE_RESOURCE_DETECTORS", "none"],
];

function reportUnsupported(load: Load, report: SdkStart["report"]): void {
  for (const [name, ...supported] of unsupportedVariables) {
    const value = process.env[name];
    if (value && !supported.includes(value.toLowerCase())) report(`${name}=${value} is not supported, and ignored`);
  }
  const { parseKeyPairsIntoRecord }: typeof import("@opentelemetry/core") = load("@opentelemetry/core");
  const isValid = (field: string): boolean => Object.keys(parseKeyPairsIntoRecord(field)).length > 0;
  for (const part of ["", "TRACES_", "METRICS_"]) {
    const name = `OTEL_EXPORTER_OTLP_${part}HEADERS`;
    const fields = (process.env[name] ?? "").split(",").filter((field) => field.trim() !== "");
    // The message does not include the value, because the value may be a credential.
    if (!fields.every(isValid)) report(`${name} must be a comma-separated list of name=value; other items are ignored`);
    for (const file of ["CERTIFICATE", "CLIENT_CERTIFICATE", "CLIENT_KEY"]) {
      reportUnreadable(`OTEL_EXPORTER_OTLP_${part}${file}`, report);
    }
  }
}

// Checks the file, because the SDK's error does not name the variable, and with gRPC appears only at the first export.
function reportUnreadable(variable: string, report: SdkStart["report"]): void {
  const path = process.env[variable];
  if (!path) return;
  try {
    accessSync(path, constants.R_OK);
  } catch (cause) {
    report(`cannot read the file of ${variable}: ${String(cause)}`);
  }
}

function readMs(variable: string, fallback: number, report: SdkStart["report"]): number {
  const text = process.env[variable];
  const ms = Number(text || fallback);
  if (ms >= 1 && ms <= timerMsMax) return ms;
  report(`${variable} must be between 1 and ${timerMsMax}, got ${JSON.stringify(text)}; using ${fallback}`);
  return fallback;
}

/** The maximum Node.js timer delay, in milliseconds. */
const timerMsMax = 2 ** 31 - 1;

/** The common interface of all exporters. */
interface Exporter<Items> {
  export(items: Items, done: (result: { code: number; error?: Error }) => void): void;
}

/** Logs when an exporter begins to fail, and when the exporter works again. Does not log each failure. */
function logOutcomes<Items, One extends Exporter<Items>>(
  exporter: One & Exporter<Items>,
  signal: Signal,
  log: SdkOptions["log"],
): One {
  const send = exporter.export.bind(exporter);
  let isFailing = false;
  exporter.export = (items, done) =>
    send(items, ({ code, error }) => {
      const fields = { errorCode: telemetryCode, signal, problem: error?.message };
      if (code !== 0 && !isFailing) log.warn(fields, "cannot export telemetry");
      if (code === 0 && isFailing) log.info({ signal }, "exporting telemetry again");
      isFailing = code !== 0;
      done({ code: 0 });
    });
  return exporter;
}

function ignoreProblem(): void {}
