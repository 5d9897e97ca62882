import { hostname } from "node:os";
import { randomUUID } from "node:crypto";
import { percentDecoded } from "../traces/baggage.ts";
import { type SamplerName, samplerNames } from "../traces/sampler.ts";
import type { Resource } from "./otlp-message.ts";

/** Where and how a signal is exported by OTLP over HTTP. */
export interface OtlpTarget {
  readonly url: string;
  readonly headers: Readonly<Record<string, string>>;
  /** Milliseconds that an export may take. */
  readonly timeoutMs: number;
}

/** The settings in the variables of OpenTelemetry. */
export interface OtlpSettings {
  readonly traces: OtlpTarget | undefined;
  readonly metrics: OtlpTarget | undefined;
  readonly sampler: SamplerName;
  /** The argument of the sampler, from 0 to 1. */
  readonly samplerRatio: number;
  /** Milliseconds between two exports of metrics. */
  readonly metricIntervalMs: number;
  /** Milliseconds between two exports of spans. */
  readonly spanDelayMs: number;
  /** The most spans that wait to be exported. */
  readonly spanQueueMax: number;
  /** The most spans in one export. */
  readonly spanBatchMax: number;
  readonly resource: Resource;
  /** What is wrong with variables that are not understood; they have their defaults, as the specification demands. */
  readonly problems: readonly string[];
}

type Environment = Readonly<Record<string, string | undefined>>;

/**
 * Reads the variables of OpenTelemetry (`OTEL_…`). A signal is exported when it has an endpoint, of its own or for all,
 * and its `OTEL_*_EXPORTER` is not `none`.
 */
export function readOtlpSettings(environment: Environment): OtlpSettings {
  const problems: string[] = [];
  const numberOf = (name: string, fallback: number, most: number): number => {
    const text = valueOf(environment, name);
    const number = text === undefined ? fallback : Number(text);
    if (number >= 0 && number <= most) return number;
    problems.push(`${name} is not a number from 0 to ${most}`);
    return fallback;
  };
  const targetOf = (signal: "traces" | "metrics"): OtlpTarget | undefined =>
    readTarget(environment, signal, numberOf, problems);
  return {
    traces: targetOf("traces"),
    metrics: targetOf("metrics"),
    sampler: readSampler(environment, problems),
    samplerRatio: numberOf("OTEL_TRACES_SAMPLER_ARG", 1, 1),
    metricIntervalMs: Math.max(intervalMsMin, numberOf("OTEL_METRIC_EXPORT_INTERVAL", 60_000, dayMs)),
    spanDelayMs: Math.max(intervalMsMin, numberOf("OTEL_BSP_SCHEDULE_DELAY", 5_000, dayMs)),
    spanQueueMax: numberOf("OTEL_BSP_MAX_QUEUE_SIZE", 2_048, spansMax),
    spanBatchMax: Math.max(1, numberOf("OTEL_BSP_MAX_EXPORT_BATCH_SIZE", 512, spansMax)),
    resource: readResource(environment),
    problems,
  };
}

const dayMs = 86_400_000;
/** The shortest interval between exports, in milliseconds: a shorter one is a typing error. */
const intervalMsMin = 10;
/** The most spans that may be configured to wait: each takes about half a kilobyte. */
const spansMax = 100_000;

function readTarget(
  environment: Environment,
  signal: "traces" | "metrics",
  numberOf: (name: string, fallback: number, most: number) => number,
  problems: string[],
): OtlpTarget | undefined {
  const upper = signal.toUpperCase();
  const own = (name: string): string => `OTEL_EXPORTER_OTLP_${upper}_${name}`;
  const endpoint = valueOf(environment, own("ENDPOINT"));
  const base = valueOf(environment, "OTEL_EXPORTER_OTLP_ENDPOINT");
  // A signal's own endpoint is used as it is; the common one gets the path of the signal.
  const url = endpoint ?? (base === undefined ? undefined : `${base.replace(/\/$/, "")}/v1/${signal}`);
  if (url === undefined || environment["OTEL_SDK_DISABLED"]?.toLowerCase() === "true") return undefined;
  if (valueOf(environment, `OTEL_${upper}_EXPORTER`) === "none") return undefined;
  const protocol = valueOf(environment, own("PROTOCOL")) ?? valueOf(environment, "OTEL_EXPORTER_OTLP_PROTOCOL");
  if (protocol !== undefined && protocol !== "http/protobuf") {
    problems.push(`OTEL_EXPORTER_OTLP_PROTOCOL: only http/protobuf is spoken, to ${signal}`);
  }
  if (!/^https?:\/\//.test(url) || !URL.canParse(url)) {
    problems.push(`OTEL_EXPORTER_OTLP_ENDPOINT is not an http or https URL: no ${signal} are exported`);
    return undefined;
  }
  const { username, password } = new URL(url);
  if (username !== "" || password !== "") {
    problems.push(
      `OTEL_EXPORTER_OTLP_ENDPOINT has credentials, which belong in OTEL_EXPORTER_OTLP_HEADERS: no ${signal} are exported`,
    );
    return undefined;
  }
  const headers = valueOf(environment, own("HEADERS")) ?? valueOf(environment, "OTEL_EXPORTER_OTLP_HEADERS");
  const timeoutMs = numberOf("OTEL_EXPORTER_OTLP_TIMEOUT", 10_000, dayMs);
  // A timer takes whole milliseconds, and at least one.
  const ownTimeoutMs = Math.max(1, Math.round(numberOf(own("TIMEOUT"), timeoutMs, dayMs)));
  return { url, headers: readPairs(headers ?? ""), timeoutMs: ownTimeoutMs };
}

function readSampler(environment: Environment, problems: string[]): SamplerName {
  const text = valueOf(environment, "OTEL_TRACES_SAMPLER") ?? "parentbased_always_on";
  const known = samplerNames.find((name) => name === text);
  if (known === undefined) problems.push(`OTEL_TRACES_SAMPLER is none of ${samplerNames.join(", ")}`);
  return known ?? "parentbased_always_on";
}

function readResource(environment: Environment): Resource {
  const name = valueOf(environment, "OTEL_SERVICE_NAME");
  return {
    "service.name": "plantstore",
    "service.instance.id": randomUUID(),
    "host.name": hostname(),
    "process.pid": process.pid,
    ...readPairs(valueOf(environment, "OTEL_RESOURCE_ATTRIBUTES") ?? ""),
    ...(name !== undefined && { "service.name": name }),
  };
}

/** Reads `name=value,name=value`, percent-encoded as in W3C Baggage; pairs that are malformed are left out. */
function readPairs(text: string): Record<string, string> {
  const pairs = text.split(",").map((pair) => pair.split("="));
  return Object.fromEntries(
    pairs.flatMap(([name = "", ...value]) => {
      const decoded = percentDecoded(value.join("=").trim());
      return name.trim() === "" || value.length === 0 || decoded === undefined ? [] : [[name.trim(), decoded]];
    }),
  );
}

function valueOf(environment: Environment, name: string): string | undefined {
  const value = environment[name]?.trim();
  return value === "" ? undefined : value;
}
