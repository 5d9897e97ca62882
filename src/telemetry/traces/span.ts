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
  /** An `error.type` among them says that the span failed. */
  readonly attributes: Attributes;
  /** Spans that it belongs to besides its parent. */
  readonly links: readonly SpanContext[];
}

/** Returns the time in milliseconds since 1970, with fractions; it never jumps when the system's clock is set. */
export function nowMs(): number {
  return performance.timeOrigin + performance.now();
}
