import type { Attributes } from "../metrics/metric-family.ts";
import type { SpanContext } from "./trace-context.ts";

/** A span that has ended and is to be exported. */
export interface EndedSpan {
  readonly context: SpanContext;
  /** The span id of its parent; "" for a root. */
  readonly parentSpanId: string;
  readonly name: string;
  readonly kind: "server" | "client";
  /** Milliseconds since 1970, with fractions. */
  readonly startMs: number;
  readonly endMs: number;
  /** Whether its attribute `error.type` says that it failed. */
  readonly attributes: Attributes;
  /** Spans that it belongs to besides its parent. */
  readonly links: readonly SpanContext[];
}

/** Returns the time now in milliseconds since 1970, as exact as the clock of the process and unmoved by its changes. */
export function nowMs(): number {
  return performance.timeOrigin + performance.now();
}
