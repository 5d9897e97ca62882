import {
  context,
  type Context,
  isSpanContextValid,
  propagation,
  ROOT_CONTEXT,
  type Span,
  SpanKind,
  SpanStatusCode,
  type TextMapGetter,
  trace,
  type Tracer,
} from "@opentelemetry/api";
import { type ContextKey, type ContextValues, createContextKey, type Interceptor } from "@connectrpc/connect";
import type { AdmitRequest, AnsweredRequest } from "@plantstore/gateway";
import { type Attributes, httpAttributes, rpcAttributes } from "@plantstore/gateway/metrics";

/** The hooks that give a span to each request of a gateway, and to work that is done for several of them at once. */
export interface Tracing {
  readonly onRequest: (request: AdmitRequest) => void;
  /** Must be the outermost interceptor, so that the span is active in all others, and in the handler. */
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

/** The trace of a request, and its span in it, in hexadecimal. */
export interface TraceIds {
  readonly traceId: string;
  readonly spanId: string;
}

const contextKey: ContextKey<Context | undefined> = createContextKey<Context | undefined>(undefined, {
  description: "OpenTelemetry context",
});

/** Returns the trace of a request; `undefined` if it is in none. */
export function traceIdsOf(contextValues: ContextValues): TraceIds | undefined {
  const ids = spanOf(contextValues)?.spanContext();
  return ids !== undefined && isSpanContextValid(ids) ? { traceId: ids.traceId, spanId: ids.spanId } : undefined;
}

/**
 * Creates the hooks for the SDK that is registered by now.
 *
 * Names and attributes are those of the semantic conventions. They are set when a request is answered, and only if its
 * span is recorded: what most requests cost is the decision not to record them.
 */
export function createTracing(): Tracing {
  const tracer = trace.getTracer("@plantstore/gateway");
  return {
    onRequest: ({ header, procedure, contextValues }) => {
      // Not the active context: on a connection with several requests it may be that of another one.
      const parent = propagation.extract(ROOT_CONTEXT, header, headerGetter);
      const span = tracer.startSpan(procedure?.slice(1) ?? "HTTP", { kind: SpanKind.SERVER }, parent);
      contextValues.set(contextKey, trace.setSpan(parent, span));
    },
    interceptor: (next) => (request) => {
      const active = request.contextValues.get(contextKey);
      if (active === undefined) return next(request);
      const response = context.with(active, next, undefined, request);
      // A streaming handler runs while its messages are read, which is long after `next` has returned.
      if (!request.stream) return response;
      return response.then((answer) =>
        answer.stream ? { ...answer, message: within(active, answer.message) } : answer,
      );
    },
    onAnswer: (answer) => {
      const span = spanOf(answer.contextValues);
      if (span?.isRecording() === true) endRequest(span, answer);
    },
    startShared: (about) => startShared(tracer, about),
  };
}

const headerGetter: TextMapGetter<AdmitRequest["header"]> = {
  get: (header, name) => header.get(name) ?? undefined,
  keys: () => [],
};

function spanOf(contextValues: ContextValues): Span | undefined {
  const active = contextValues.get(contextKey);
  return active && trace.getSpan(active);
}

function endRequest(span: Span, answer: AnsweredRequest): void {
  const attributes = answer.protocol === "rest" ? httpAttributes(answer) : rpcAttributes(answer);
  span.updateName(answer.protocol === "rest" ? httpName(answer, attributes) : rpcName(attributes));
  span.setAttributes(attributes);
  if (attributes["error.type"] !== undefined) span.setStatus({ code: SpanStatusCode.ERROR });
  span.end();
}

// An unknown method is `_OTHER` as an attribute; the conventions give its span the name of the system.
function rpcName(attributes: Attributes): string {
  return String(attributes[attributes["rpc.method"] === "_OTHER" ? "rpc.system.name" : "rpc.method"]);
}

// An unknown method is `_OTHER` as an attribute; the conventions call it `HTTP` in the name of a span.
function httpName({ httpRoute }: AnsweredRequest, attributes: Attributes): string {
  const method = attributes["http.request.method"];
  return `${method === "_OTHER" ? "HTTP" : method}${httpRoute === undefined ? "" : ` ${httpRoute}`}`;
}

function startShared(tracer: Tracer, { name, attributes, requests }: SharedWork): (error?: unknown) => void {
  const spans = requests.flatMap((values) => (values && spanOf(values)) ?? []).filter((span) => span.isRecording());
  const [first] = spans;
  if (first === undefined) return nothing;
  // A span has one parent: it appears in the first of the traces, with links to all that the SDK's limit admits.
  const parent = trace.setSpan(ROOT_CONTEXT, first);
  const links = spans.map((span) => ({ context: span.spanContext() }));
  const shared = tracer.startSpan(name, { kind: SpanKind.CLIENT, attributes, links }, parent);
  return (error) => {
    if (error !== undefined) shared.setAttribute("error.type", "_OTHER").setStatus({ code: SpanStatusCode.ERROR });
    shared.end();
  };
}

function within<T>(active: Context, messages: AsyncIterable<T>): AsyncIterable<T> {
  return {
    [Symbol.asyncIterator]() {
      const iterator = messages[Symbol.asyncIterator]();
      return {
        next: () => context.with(active, () => iterator.next()),
        return: (value) =>
          context.with(active, async (): Promise<IteratorResult<T>> => {
            const ended = await iterator.return?.(value);
            return ended ?? { done: true, value: undefined };
          }),
      };
    },
  };
}

function nothing(): void {}
