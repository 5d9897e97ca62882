import { context, type Context, isSpanContextValid, propagation, type Span, trace } from "@opentelemetry/api";
import { type ContextKey, type ContextValues, createContextKey } from "@connectrpc/connect";

/** A request's trace id and span id, in hexadecimal. */
export interface TraceIds {
  readonly traceId: string;
  readonly spanId: string;
}

/** The context key for a request's OpenTelemetry context. */
export const contextKey: ContextKey<Context | undefined> = createContextKey<Context | undefined>(undefined);

/** The context key for the OpenTelemetry context in a proxy's call to its upstream. */
export const callContextKey: ContextKey<Context | undefined> = createContextKey<Context | undefined>(undefined);

/** Returns a request's trace ids, or `undefined` if the request belongs to no trace. */
export function traceIdsOf(contextValues: ContextValues): TraceIds | undefined {
  const ids = spanOf(contextValues)?.spanContext();
  return ids !== undefined && isSpanContextValid(ids) ? { traceId: ids.traceId, spanId: ids.spanId } : undefined;
}

/** Returns a request span, which may be non-recording. */
export function spanOf(contextValues: ContextValues): Span | undefined {
  const active = contextValues.get(contextKey);
  return active && trace.getSpan(active);
}

/**
 * Returns the header fields that propagate the span of a request, or of the request's call to an upstream. Returns no
 * fields if there is no span or the SDK throws. Fields that the propagator did not set are `undefined`, which removes
 * the caller's fields with these names.
 */
export function tracePropagation(contextValues: ContextValues): Readonly<Record<string, string | undefined>> {
  const active = contextValues.get(callContextKey) ?? contextValues.get(contextKey);
  if (active === undefined) return {};
  try {
    // A tracestate is valid only with the traceparent with which it was sent (W3C Trace Context §3.3), so the caller's
    // tracestate is removed.
    const otherFields = propagation.fields().filter((name) => name !== "baggage");
    const fields: Record<string, string | undefined> = Object.fromEntries(otherFields.map((name) => [name, undefined]));
    // Baggage is not injected. The application decides whether the caller's baggage is forwarded.
    propagation.inject(propagation.deleteBaggage(active), fields);
    return fields;
  } catch {
    return {};
  }
}

/** Calls a function while a request's context is active, and returns its result. */
export function runInRequestContext<A, R>(contextValues: ContextValues, run: (argument: A) => R, argument: A): R {
  const active = contextValues.get(contextKey);
  return active === undefined ? run(argument) : runInContext(active, run, argument);
}

/** Calls a function while a context is active, or without the context if the SDK throws. */
export function runInContext<A, R>(active: Context, run: (argument: A) => R, argument: A): R {
  let isStarted = false;
  const start = (): R => {
    isStarted = true;
    return run(argument);
  };
  try {
    return context.with(active, start);
  } catch (error) {
    if (isStarted) throw error;
    return run(argument);
  }
}
