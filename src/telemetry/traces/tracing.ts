import { AsyncLocalStorage, AsyncResource, type AsyncResourceOptions } from "node:async_hooks";
import { type ContextKey, type ContextValues, createContextKey, type Interceptor } from "@connectrpc/connect";
import type { AdmitRequest, AnsweredRequest } from "../../gateway/index.ts";
import type { Attributes } from "../metrics/metric-family.ts";
import { httpAttributes, rpcAttributes } from "../metrics/request-attributes.ts";
import { readBaggage } from "./baggage.ts";
import type { Sampler } from "./sampler.ts";
import { type EndedSpan, nowMs } from "./span.ts";
import {
  newRandomness,
  newSpanId,
  newTraceId,
  randomnessOf,
  readTraceContext,
  sampledFlag,
  type SpanContext,
} from "./trace-context.ts";

/** The trace that a request belongs to, for its interceptors and its handler. */
export class RequestTrace {
  /** When the span of the request began, in milliseconds since 1970; 0 if it is not recorded. */
  readonly startMs: number;
  readonly #parent: SpanContext | undefined;
  readonly #randomness: number;
  readonly #header: AdmitRequest["header"];
  #context: SpanContext | undefined;
  #entries: ReadonlyMap<string, string> | undefined;

  constructor(header: AdmitRequest["header"], sampler: Sampler) {
    const sent = header.get("traceparent");
    // Looking for a field searches the whole header, so `tracestate` is only looked for when it can matter.
    this.#parent = sent === null ? undefined : readTraceContext(sent, header.get("tracestate"));
    this.#randomness = this.#parent === undefined ? newRandomness() : randomnessOf(this.#parent.traceId);
    this.#header = header;
    this.startMs = sampler(this.#randomness, this.#parent) ? nowMs() : 0;
  }

  /** Whether the span of the request is recorded. */
  get isSampled(): boolean {
    return this.startMs > 0;
  }

  /** The span of the request, which is the parent of other spans of the program. */
  get context(): SpanContext {
    return (this.#context ??= {
      traceId: this.#parent?.traceId ?? newTraceId(this.#randomness),
      spanId: newSpanId(),
      traceFlags: this.isSampled ? sampledFlag : 0,
      traceState: this.#parent?.traceState ?? "",
    });
  }

  /** The span id of the caller; "" when it sent none. */
  get parentSpanId(): string {
    return this.#parent?.spanId ?? "";
  }

  /** The caller's baggage (W3C Baggage); empty if it sent none, or too much. */
  get baggage(): ReadonlyMap<string, string> {
    return (this.#entries ??= readBaggage(this.#header.get("baggage")));
  }
}

/** Options of {@link createTracing}. */
export interface TracingOptions {
  readonly sampler: Sampler;
  /** Takes a span that has ended. Must neither wait nor throw. */
  readonly take: (span: EndedSpan) => void;
}

/** The hooks that trace the requests of a gateway, and work that is done for several of them at once. */
export interface Tracing {
  readonly onRequest: (request: AdmitRequest) => void;
  /** Must be the outermost interceptor, so that all others run within the trace. */
  readonly interceptor: Interceptor;
  readonly onAnswer: (answer: AnsweredRequest) => void;
  /** Starts the span of shared work. @returns a function that ends it, given the error if the work failed */
  readonly startShared: (about: SharedWork) => (error?: unknown) => void;
}

/** Work that is done for several requests at once. */
export interface SharedWork {
  readonly name: string;
  readonly attributes: Attributes;
  /** The context values of each request. */
  readonly requests: readonly (ContextValues | undefined)[];
}

/** The key of a request's trace among its context values; `undefined` while requests are not traced. */
export const traceKey: ContextKey<RequestTrace | undefined> = createContextKey<RequestTrace | undefined>(undefined, {
  description: "trace",
});

/** Returns the trace of the request being handled, anywhere in its handler; `undefined` outside of one. */
export function activeTrace(): RequestTrace | undefined {
  return active.getStore();
}

const active = new AsyncLocalStorage<RequestTrace>();

/** The most links of a span: OpenTelemetry's default. */
const linksMax = 128;

/** Creates the hooks that give each request a trace, and a span if the sampler says so. */
export function createTracing({ sampler, take }: TracingOptions): Tracing {
  return {
    onRequest: ({ header, contextValues }) => void contextValues.set(traceKey, new RequestTrace(header, sampler)),
    interceptor: (next) => (request) => {
      const trace = request.contextValues.get(traceKey);
      if (trace === undefined) return next(request);
      const response = runWithin(trace, next, request);
      // A streaming handler runs while its messages are read, which is long after `next` has returned.
      if (!request.stream) return response;
      return response.then((answer) =>
        answer.stream ? { ...answer, message: within(trace, answer.message) } : answer,
      );
    },
    onAnswer: (answer) => {
      const trace = answer.contextValues.get(traceKey);
      if (trace?.isSampled === true) take(requestSpan(trace, answer));
    },
    startShared: (about) => startShared(about, take),
  };
}

/**
 * Calls a function with a trace as the active one, also for the asynchronous work that the function starts.
 *
 * AsyncLocalStorage's own `run` copies everything that is active twice, with the trace and without it; an AsyncResource
 * restores what was active before.
 */
function runWithin<Arg, Result>(trace: RequestTrace, run: (arg: Arg) => Result, arg: Arg): Result {
  return new AsyncResource("PLANTSTORE_REQUEST", noDestroyHook).runInAsyncScope(
    enterAndRun<Arg, Result>,
    undefined,
    trace,
    run,
    arg,
  );
}

// The resource holds nothing that would have to be released.
const noDestroyHook: AsyncResourceOptions = { requireManualDestroy: true };

function enterAndRun<Arg, Result>(trace: RequestTrace, run: (arg: Arg) => Result, arg: Arg): Result {
  active.enterWith(trace);
  return run(arg);
}

function requestSpan(trace: RequestTrace, answer: AnsweredRequest): EndedSpan {
  const { context, parentSpanId, startMs } = trace;
  const about = { context, parentSpanId, kind: "server", startMs, endMs: nowMs(), links: [] } as const;
  if (answer.protocol !== "rest") {
    const attributes = rpcAttributes(answer);
    return { ...about, name: String(attributes["rpc.method"]), attributes };
  }
  const attributes = httpAttributes(answer);
  const route = answer.httpRoute === undefined ? "" : ` ${answer.httpRoute}`;
  return { ...about, name: `${attributes["http.request.method"]}${route}`, attributes };
}

function startShared(
  { name, attributes, requests }: SharedWork,
  take: (span: EndedSpan) => void,
): (error?: unknown) => void {
  const sampled = requests.flatMap((values) => {
    const trace = values?.get(traceKey);
    return trace?.isSampled === true ? [trace.context] : [];
  });
  const [parent] = sampled;
  if (parent === undefined) return nothing;
  const startMs = nowMs();
  // A span has one parent: it appears in the first of the traces, with links to all.
  const context = { ...parent, spanId: newSpanId() };
  return (error) => {
    const failed = error === undefined ? {} : { "error.type": "_OTHER" };
    take({
      context,
      parentSpanId: parent.spanId,
      name,
      kind: "client",
      startMs,
      endMs: nowMs(),
      attributes: { ...attributes, ...failed },
      links: sampled.slice(0, linksMax),
    });
  };
}

function within<T>(trace: RequestTrace, messages: AsyncIterable<T>): AsyncIterable<T> {
  return {
    [Symbol.asyncIterator]() {
      const iterator = messages[Symbol.asyncIterator]();
      return {
        next: () => runWithin(trace, () => iterator.next(), undefined),
        return: (value) =>
          runWithin(
            trace,
            async (): Promise<IteratorResult<T>> => {
              const ended = await iterator.return?.(value);
              return ended ?? { done: true, value: undefined };
            },
            undefined,
          ),
      };
    },
  };
}

function nothing(): void {}
