import { context, type Context, isSpanContextValid, propagation, type Span, trace } from "@opentelemetry/api";
import { type ContextKey, type ContextValues, createContextKey } from "@connectrpc/connect";

/** The trace of a request, and its span in it, in hexadecimal. */
export interface TraceIds {
  readonly traceId: string;
  readonly spanId: string;
}

/** The key under which the context values of a request hold its OpenTelemetry context. */
export const contextKey: ContextKey<Context | undefined> = createContextKey<Context | undefined>(undefined);

/** Returns the trace of a request; `undefined` if it is in none. */
export function traceIdsOf(contextValues: ContextValues): TraceIds | undefined {
  const ids = spanOf(contextValues)?.spanContext();
  return ids !== undefined && isSpanContextValid(ids) ? { traceId: ids.traceId, spanId: ids.spanId } : undefined;
}

/** Returns the span of a request, which may be one that is not recorded. */
export function spanOf(contextValues: ContextValues): Span | undefined {
  const active = contextValues.get(contextKey);
  return active && trace.getSpan(active);
}

/**
 * Returns the header fields that pass a request's span on: none if it has none, or if the SDK fails. Those that belong
 * to another span are `undefined`.
 */
export function tracePropagation(contextValues: ContextValues): Readonly<Record<string, string | undefined>> {
  const active = contextValues.get(contextKey);
  if (active === undefined) return {};
  try {
    // A tracestate says nothing behind another traceparent than its own (W3C Trace Context §3.3).
    const others = propagation.fields().filter((name) => name !== "baggage");
    const fields: Record<string, string | undefined> = Object.fromEntries(others.map((name) => [name, undefined]));
    // The caller's goes by the rules of the program, which may keep it back.
    propagation.inject(propagation.deleteBaggage(active), fields);
    return fields;
  } catch {
    return {};
  }
}

/** Calls a function of the program while the context of its request is active, and returns what it returns. */
export function callWithin<A, R>(contextValues: ContextValues, run: (argument: A) => R, argument: A): R {
  const active = contextValues.get(contextKey);
  return active === undefined ? run(argument) : callIn(active, run, argument);
}

/** Calls a function while a context is active; without it if the SDK fails, because a call must not fail by that. */
export function callIn<A, R>(active: Context, run: (argument: A) => R, argument: A): R {
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
