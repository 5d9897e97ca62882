import { createNoopMeter, type Meter, metrics } from "@opentelemetry/api";
import type {
  Admit,
  AdmitProcedure,
  AdmitRequest,
  CompletedRequest,
  Endpoint,
  ServingOptions,
} from "@protoport/gateway/fetch";
import { refusePromise } from "@protoport/gateway/options";
import {
  createCallDurations,
  createRequestDurations,
  type Instruments,
  type MeasuredCall,
} from "../conventions/index.ts";
import { runInRequestContext, tracePropagation } from "./request-context.ts";
import { createTracing, scopeName, serverAttributes, type Tracing, type TracingOptions } from "./tracing.ts";

/**
 * Adds OpenTelemetry to the options for a gateway or a proxy. Each request has a span, and its duration is recorded as
 * `http.server.request.duration` or `rpc.server.call.duration`, by the semantic conventions.
 *
 * Spans and metrics go to the SDK that the application registers, before or after this call. Without an SDK, nothing is
 * recorded. A request's context, with its span and baggage, is active in `onRequest`, `admit`, interceptors, handlers,
 * endpoints, `onError` and `onResponse`, so that other instrumentations and propagators use it. An SDK that throws
 * never fails a call. The error is passed to `onFault`. A proxy's upstream calls are children of the request's span.
 * The propagator's fields, such as `traceparent`, replace the caller's fields, unless the propagator throws.
 *
 * @example
 * ```ts
 * const gateway = createGateway(withOpenTelemetry({ routes }));
 * ```
 */
export function withOpenTelemetry<Options extends Partial<ServingOptions> & Upstreams>(
  options: Options,
  tracingOptions: TracingOptions = {},
): Options {
  const tracing = createTracing(tracingOptions);
  const { admit, onRequest, onError, onResponse, interceptors = [], endpoints = [] } = options;
  return {
    ...options,
    ...withUpstreamCalls(options, tracing),
    onRequest: combineHooks(
      tracing.onRequest,
      onRequest && ((request) => runInRequestContext(request.contextValues, onRequest, request)),
    ),
    ...(admit && { admit: admitInContext(admit) }),
    interceptors: [tracing.interceptor, ...interceptors],
    endpoints: endpoints.map(withRequestContext),
    ...(onError && {
      onError: (request, error) => runInRequestContext(request.contextValues, () => onError(request, error), undefined),
    }),
    onResponse: combineHooks(
      onResponse && ((request) => runInRequestContext(request.contextValues, onResponse, request)),
      createDurations(),
      tracing.onResponse,
    ),
  };
}

/** Returns an `admit` that runs in its request's context. A function that `admit` returns runs in the context too. */
function admitInContext(admit: Admit): Admit {
  const inContext: Admit = (request) => {
    const { contextValues } = request;
    const bind = (check: void | AdmitProcedure): void | AdmitProcedure =>
      typeof check === "function" ? (...rpc) => runInRequestContext(contextValues, (it) => check(...it), rpc) : check;
    const admitted = runInRequestContext(contextValues, admit, request);
    if (admitted === undefined || typeof admitted === "function") return bind(admitted);
    return Promise.resolve(admitted).then(bind);
  };
  return Object.assign(inContext, { requireChecked: admit.requireChecked });
}

/** The proxy options to which propagator fields and a call observer are added. */
interface Upstreams {
  readonly upstreams?: readonly (object & { readonly requestHeader?: object & { readonly set?: FieldsOf } })[];
  // The parameter must be bivariant, because the proxy passes calls with more members.
  onUpstreamCall?(this: void, call: MeasuredCall): ((end: never) => void) | undefined;
}

type FieldsOf = (request: AdmitRequest) => Readonly<Record<string, string | undefined>>;

/** Adds spans, durations and propagator fields to a proxy's calls. The application's fields take precedence. */
function withUpstreamCalls({ upstreams, onUpstreamCall }: Upstreams, tracing: Tracing): Upstreams {
  if (upstreams === undefined) return {};
  const durations = perMeter((instruments) => createCallDurations(instruments, serverAttributes));
  return {
    onUpstreamCall: (call) => {
      const ends = [onUpstreamCall?.(call), tracing.onUpstreamCall(call), durations()?.(call)] as const;
      return (end) => ends.forEach((onEnd) => onEnd?.(end));
    },
    upstreams: upstreams.map((upstream) => {
      const set = upstream.requestHeader?.set;
      const setAll: FieldsOf = (request) => ({
        ...tracePropagation(request.contextValues),
        ...refusePromise(set?.(request), "requestHeader.set must be synchronous"),
      });
      return { ...upstream, requestHeader: { ...upstream.requestHeader, set: setAll } };
    }),
  };
}

/** Returns a hook that calls all given hooks, even if one hook fails. The returned hook then fails, too. */
function combineHooks<A>(...hooks: readonly (((argument: A) => unknown) | undefined)[]): (argument: A) => unknown {
  const definedHooks = hooks.filter((hook) => hook !== undefined);
  return (argument) => {
    let pending: Promise<unknown>[] | undefined;
    for (const hook of definedHooks) {
      try {
        const returned = hook(argument);
        if (returned instanceof Promise) (pending ??= []).push(returned);
      } catch (error) {
        (pending ??= []).push(Promise.reject(error));
      }
    }
    return pending && Promise.all(pending);
  };
}

function withRequestContext(endpoint: Endpoint): Endpoint {
  const handle: Endpoint["handle"] = (request) =>
    runInRequestContext(request.contextValues, (it) => endpoint.handle(it), request);
  // The gateway reads inherited members, and refuses members of a plain object that a class instance may have.
  return Object.assign<object, Endpoint, object>(Object.create(Object.getPrototypeOf(endpoint)), endpoint, { handle });
}

/** Creates a function that records a request duration with the meter provider registered at the time of the call. */
function createDurations(): (request: CompletedRequest) => void {
  const durations = perMeter(createRequestDurations);
  return (request) => {
    const record = durations();
    // The duration is recorded in the request's context, so that an exemplar refers to the request's trace.
    if (record !== undefined) runInRequestContext(request.contextValues, record, request);
  };
}

/** Returns a function that creates a recorder for each meter provider, or returns `undefined` without a provider. */
function perMeter<Recorder>(
  create: (instruments: Pick<Instruments, "histogram">) => Recorder,
): () => Recorder | undefined {
  const noopMeter = createNoopMeter();
  let provider: unknown;
  let recorder: Recorder | undefined;
  return () => {
    // Unlike a tracer, a meter of the API does not switch to a provider that is registered later.
    const registered = metrics.getMeterProvider();
    if (registered !== provider) {
      provider = registered;
      const meter = registered.getMeter(scopeName);
      recorder = meter === noopMeter ? undefined : create(histogramsOf(meter));
    }
    return recorder;
  };
}

function histogramsOf(meter: Meter): Pick<Instruments, "histogram"> {
  return {
    histogram: ({ name, unit, description }, bounds) => {
      const advice = { explicitBucketBoundaries: [...bounds] };
      const histogram = meter.createHistogram(name, { unit, description, advice });
      return { with: (attributes) => ({ record: (value) => histogram.record(value, attributes) }) };
    },
  };
}
