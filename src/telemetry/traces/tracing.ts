import { AsyncLocalStorage } from "node:async_hooks";
import { type ContextKey, type ContextValues, createContextKey, type Interceptor } from "@connectrpc/connect";
import type { AdmitRequest, AnsweredRequest } from "../../gateway/index.ts";
import type { Attributes } from "../metrics/metric-family.ts";
import { httpAttributes, rpcAttributes } from "../metrics/request-attributes.ts";
import { readBaggage } from "./baggage.ts";
import type { Sampler } from "./sampler.ts";
import { type EndedSpan, nowMs } from "./span.ts";
import { newSpanId, newTraceId, readTraceContext, sampledFlag, type SpanContext } from "./trace-context.ts";

/** The trace that a request belongs to, for its interceptors and its handler. */
export class RequestTrace {
  /** The span of the request; other spans of the program belong below it. */
  readonly context: SpanContext;
  /** The span id of the caller; "" when it sent none. */
  readonly parentSpanId: string;
  /** When it began, in milliseconds since 1970. */
  readonly startMs: number;
  readonly #header: AdmitRequest["header"];
  #entries: ReadonlyMap<string, string> | undefined;

  constructor(context: SpanContext, parentSpanId: string, header: AdmitRequest["header"]) {
    this.context = context;
    this.parentSpanId = parentSpanId;
    this.startMs = (context.traceFlags & sampledFlag) === 0 ? 0 : nowMs();
    this.#header = header;
  }

  /** The caller's baggage (W3C Baggage); empty without one, or with one that is too long. */
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

/** The hooks of a gateway that trace its requests, and of what works for several of them at once. */
export interface Tracing {
  readonly onRequest: (request: AdmitRequest) => void;
  /** Must be the outermost interceptor, so that all others run within the trace. */
  readonly interceptor: Interceptor;
  readonly onAnswer: (answer: AnsweredRequest) => void;
  /** Starts the span of work that is done for several requests. @returns what ends it, with the error if it failed */
  readonly startShared: (about: SharedWork) => (error?: unknown) => void;
}

/** Work that is done for several requests at once. */
export interface SharedWork {
  readonly name: string;
  readonly attributes: Attributes;
  /** The context values of each request. */
  readonly requests: readonly (ContextValues | undefined)[];
}

/** Where the context values of a request hold its trace, while requests are traced. */
export const traceKey: ContextKey<RequestTrace | undefined> = createContextKey<RequestTrace | undefined>(undefined, {
  description: "trace",
});

/** Returns the trace of the request that is being handled, wherever that is in its handler; `undefined` outside. */
export function activeTrace(): RequestTrace | undefined {
  return active.getStore();
}

const active = new AsyncLocalStorage<RequestTrace>();

/** The most links of a span: OpenTelemetry's default. */
const linksMax = 128;

/** Creates the hooks that give each request a trace, and a span if the sampler says so. */
export function createTracing({ sampler, take }: TracingOptions): Tracing {
  return {
    onRequest: ({ header, contextValues }) => void contextValues.set(traceKey, startTrace(header, sampler)),
    interceptor: (next) => (request) => {
      const trace = request.contextValues.get(traceKey);
      if (trace === undefined) return next(request);
      const response = active.run(trace, next, request);
      // A streaming handler runs while its messages are read, which is long after `next` has returned.
      if (!request.stream) return response;
      return response.then((answer) =>
        answer.stream ? { ...answer, message: within(trace, answer.message) } : answer,
      );
    },
    onAnswer: (answer) => {
      const trace = answer.contextValues.get(traceKey);
      if (trace !== undefined && isSampled(trace.context)) take(requestSpan(trace, answer));
    },
    startShared: (about) => startShared(about, take),
  };
}

function startTrace(header: AdmitRequest["header"], sampler: Sampler): RequestTrace {
  const sent = header.get("traceparent");
  // Each field is looked for in the whole header, so only where it may be there.
  const parent = sent === null ? undefined : readTraceContext(sent, header.get("tracestate"));
  const traceId = parent?.traceId ?? newTraceId();
  const traceFlags = sampler(traceId, parent) ? sampledFlag : 0;
  const context = { traceId, spanId: newSpanId(), traceFlags, traceState: parent?.traceState ?? "" };
  return new RequestTrace(context, parent?.spanId ?? "", header);
}

function isSampled({ traceFlags }: SpanContext): boolean {
  return (traceFlags & sampledFlag) !== 0;
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
    const context = values?.get(traceKey)?.context;
    return context !== undefined && isSampled(context) ? [context] : [];
  });
  const [parent] = sampled;
  if (parent === undefined) return nothing;
  const startMs = nowMs();
  // Shown in the first of the traces, and linked with all.
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
        next: () => active.run(trace, () => iterator.next()),
        return: (value) =>
          active.run(trace, async (): Promise<IteratorResult<T>> => {
            const ended = await iterator.return?.(value);
            return ended ?? { done: true, value: undefined };
          }),
      };
    },
  };
}

function nothing(): void {}
