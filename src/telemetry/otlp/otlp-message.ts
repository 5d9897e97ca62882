import { create, type MessageInitShape, toBinary } from "@bufbuild/protobuf";
import {
  AggregationTemporality,
  ExportMetricsServiceRequestSchema,
  ExportTraceServiceRequestSchema,
  type KeyValueSchema,
  type MetricSchema,
  Span_SpanKind,
  type SpanSchema,
  Status_StatusCode,
} from "../../gen/es/opentelemetry/otlp_pb.ts";
import type { Attributes, MetricFamily } from "../metrics/metric-family.ts";
import type { EndedSpan } from "../traces/span.ts";

/** The attributes by which every message names the process that exports. */
export type Resource = Attributes;

const scope = { name: "plantstore", version: "" };

/** Writes spans as OTLP's `ExportTraceServiceRequest` in protobuf. */
export function writeSpans(resource: Resource, spans: readonly EndedSpan[]): Uint8Array {
  const scopeSpans = [{ scope, spans: spans.map(toSpan) }];
  const resourceSpans = [{ resource: { attributes: toKeyValues(resource) }, scopeSpans }];
  return toBinary(ExportTraceServiceRequestSchema, create(ExportTraceServiceRequestSchema, { resourceSpans }));
}

/**
 * Writes metrics as OTLP's `ExportMetricsServiceRequest` in protobuf.
 *
 * @param startMs - when counters began to count, in milliseconds since 1970
 */
export function writeMetrics(
  resource: Resource,
  families: readonly MetricFamily[],
  { startMs, nowMs }: { readonly startMs: number; readonly nowMs: number },
): Uint8Array {
  const times = { startTimeUnixNano: toNanos(startMs), timeUnixNano: toNanos(nowMs) };
  const metrics = families.filter(({ points }) => points.length > 0).map((family) => toMetric(family, times));
  const resourceMetrics = [{ resource: { attributes: toKeyValues(resource) }, scopeMetrics: [{ scope, metrics }] }];
  return toBinary(ExportMetricsServiceRequestSchema, create(ExportMetricsServiceRequestSchema, { resourceMetrics }));
}

function toSpan(span: EndedSpan): MessageInitShape<typeof SpanSchema> {
  const { context, attributes } = span;
  return {
    traceId: toBytes(context.traceId),
    spanId: toBytes(context.spanId),
    parentSpanId: toBytes(span.parentSpanId),
    traceState: context.traceState,
    flags: context.traceFlags,
    name: span.name,
    kind: span.kind === "server" ? Span_SpanKind.SERVER : Span_SpanKind.CLIENT,
    startTimeUnixNano: toNanos(span.startMs),
    endTimeUnixNano: toNanos(span.endMs),
    attributes: toKeyValues(attributes),
    links: span.links.map(({ traceId, spanId }) => ({ traceId: toBytes(traceId), spanId: toBytes(spanId) })),
    ...(attributes["error.type"] !== undefined && { status: { code: Status_StatusCode.ERROR } }),
  };
}

interface Times {
  readonly startTimeUnixNano: bigint;
  readonly timeUnixNano: bigint;
}

function toMetric(family: MetricFamily, times: Times): MessageInitShape<typeof MetricSchema> {
  const { name, unit, description } = family;
  const aggregationTemporality = AggregationTemporality.CUMULATIVE;
  if (family.kind === "histogram") {
    const dataPoints = family.points.map(({ attributes, counts, sum }) => ({
      ...times,
      attributes: toKeyValues(attributes),
      count: BigInt(counts.reduce((total, count) => total + count, 0)),
      sum,
      bucketCounts: counts.map(BigInt),
      explicitBounds: [...family.bounds],
    }));
    return { name, unit, description, data: { case: "histogram", value: { dataPoints, aggregationTemporality } } };
  }
  const dataPoints = family.points.map(({ attributes, value }) => ({
    ...times,
    attributes: toKeyValues(attributes),
    value: { case: "asDouble", value } as const,
  }));
  if (family.kind === "gauge") return { name, unit, description, data: { case: "gauge", value: { dataPoints } } };
  const sum = { dataPoints, aggregationTemporality, isMonotonic: true };
  return { name, unit, description, data: { case: "sum", value: sum } };
}

function toKeyValues(attributes: Attributes): MessageInitShape<typeof KeyValueSchema>[] {
  return Object.entries(attributes).map(([key, value]) => ({ key, value: { value: toAnyValue(value) } }));
}

type AnyValueInit =
  | { readonly case: "stringValue"; readonly value: string }
  | { readonly case: "boolValue"; readonly value: boolean }
  | { readonly case: "intValue"; readonly value: bigint }
  | { readonly case: "doubleValue"; readonly value: number };

function toAnyValue(value: string | number | boolean): AnyValueInit {
  if (typeof value === "string") return { case: "stringValue", value };
  if (typeof value === "boolean") return { case: "boolValue", value };
  if (Number.isSafeInteger(value)) return { case: "intValue", value: BigInt(value) };
  return { case: "doubleValue", value };
}

function toBytes(hex: string): Uint8Array {
  return Buffer.from(hex, "hex");
}

function toNanos(ms: number): bigint {
  // In two parts: a number holds nanoseconds since 1970 only to within a few hundred.
  const whole = Math.floor(ms);
  return BigInt(whole) * 1_000_000n + BigInt(Math.round((ms - whole) * 1e6));
}
