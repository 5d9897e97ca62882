import { createNoopMeter, type Meter, metrics } from "@opentelemetry/api";
import type { AdmitRequest, AnsweredRequest, Endpoint, ServingOptions } from "@plantstore/gateway/internal/serve";
import { createRequestDurations, type Instruments } from "../conventions/index.ts";
import { refusePromise } from "@plantstore/gateway/options";
import { callWithin, tracePropagation } from "./request-context.ts";
import { createTracing, scopeName, type TracingOptions } from "./tracing.ts";

/**
 * Returns the options of a gateway, or a proxy, that gives each request a span, and records its duration as
 * `http.server.request.duration` or `rpc.server.call.duration`, by the semantic conventions of OpenTelemetry.
 *
 * Spans and metrics go to the SDK that the program registers, before or after; without one nothing is recorded. The
 * context of a request, with its span and baggage, is active in `onRequest`, `admit`, interceptors, handlers, endpoints,
 * `onError` and `onAnswer`, so that what other instrumentations and propagators do there belongs to it. An SDK that
 * throws makes no call fail: what it throws goes to `onFault`. The calls that a proxy makes belong to the span of the
 * request: the fields of the propagators, such as `traceparent`, take the place of the caller's, unless these throw.
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
  const { admit, onRequest, onError, onAnswer, interceptors = [], endpoints = [] } = options;
  return {
    ...options,
    ...withPropagation(options),
    onRequest: inTurn(
      tracing.onRequest,
      onRequest && ((request) => callWithin(request.contextValues, onRequest, request)),
    ),
    ...(admit && { admit: (request) => callWithin(request.contextValues, admit, request) }),
    interceptors: [tracing.interceptor, ...interceptors],
    endpoints: endpoints.map(answerWithin),
    ...(onError && {
      onError: (request, error) => callWithin(request.contextValues, () => onError(request, error), undefined),
    }),
    onAnswer: inTurn(
      onAnswer && ((answer) => callWithin(answer.contextValues, onAnswer, answer)),
      createDurations(),
      tracing.onAnswer,
    ),
  };
}

/** The upstreams of a proxy, of which only the fields that are added matter here. */
interface Upstreams {
  readonly upstreams?: readonly (object & { readonly metadata?: object & { readonly set?: FieldsOf } })[];
}

type FieldsOf = (request: AdmitRequest) => Readonly<Record<string, string | undefined>>;

/** Adds the fields of the propagators to the calls that are passed on, below those that the program sets itself. */
function withPropagation({ upstreams }: Upstreams): Upstreams {
  if (upstreams === undefined) return {};
  return {
    upstreams: upstreams.map((upstream) => {
      const set = upstream.metadata?.set;
      const all: FieldsOf = (request) => ({
        ...tracePropagation(request.contextValues),
        ...refusePromise(set?.(request), "the set of metadata must return its result"),
      });
      return { ...upstream, metadata: { ...upstream.metadata, set: all } };
    }),
  };
}

/** Calls hooks one after the other, each of them even if another fails, and hands all failures to the gateway. */
function inTurn<A>(...hooks: readonly (((argument: A) => unknown) | undefined)[]): (argument: A) => unknown {
  const present = hooks.filter((hook) => hook !== undefined);
  return (argument) => {
    let pending: Promise<unknown>[] | undefined;
    for (const hook of present) {
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

function answerWithin(endpoint: Endpoint): Endpoint {
  return { ...endpoint, answer: (request) => callWithin(request.contextValues, (of) => endpoint.answer(of), request) };
}

/** Creates a function that records the duration of a request with the meter provider that is registered by then. */
function createDurations(): (answer: AnsweredRequest) => void {
  const none = createNoopMeter();
  let provider: unknown;
  let record: ((answer: AnsweredRequest) => void) | undefined;
  return (answer) => {
    // The API has no meter that waits for its provider, as it has a tracer.
    const registered = metrics.getMeterProvider();
    if (registered !== provider) {
      provider = registered;
      const meter = registered.getMeter(scopeName);
      record = meter === none ? undefined : createRequestDurations(histogramsOf(meter));
    }
    // Within the context of the request, so that an exemplar names its trace.
    if (record !== undefined) callWithin(answer.contextValues, record, answer);
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
