import {
  context,
  type Context,
  INVALID_TRACEID,
  propagation,
  ROOT_CONTEXT,
  type Span,
  SpanKind,
  SpanStatusCode,
  type TextMapGetter,
  trace,
  type Tracer,
} from "@opentelemetry/api";
import type { ContextValues, Interceptor } from "@connectrpc/connect";
import type { AdmitRequest, AnsweredRequest } from "@plantstore/gateway/internal/serve";
import { type Attributes, httpAttributes, isRpcProtocol, rpcAttributes } from "../conventions/index.ts";
import { refuseUnknownOptions } from "@plantstore/gateway/options";
import { callIn, contextKey, spanOf } from "./request-context.ts";

/** Options of {@link createTracing}. */
export interface TracingOptions {
  /** Leaves out of spans what tells callers and resources apart: addresses, user agents and paths. Default false. */
  readonly anonymous?: boolean;
}

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

/** The instrumentation scope of spans and metrics. */
export const scopeName = "@plantstore/gateway";

/**
 * Creates the hooks for the SDK that is registered, or will be.
 *
 * Names and attributes are those of the semantic conventions. Attributes are set only if the span is recorded: what
 * most requests cost is the decision not to record them, so a sampler has nothing to go by but name, kind and parent.
 *
 * @throws TypeError for options that do not exist
 */
export function createTracing(options: TracingOptions = {}): Tracing {
  refuseUnknownOptions(options, { anonymous: true }, "createTracing");
  const { anonymous = false } = options;
  const tracer = trace.getTracer(scopeName);
  return {
    onRequest: (request) => {
      const around = contextAround(request);
      const parent = around ?? propagation.extract(ROOT_CONTEXT, request.header, headerGetter);
      const kind = around === undefined ? SpanKind.SERVER : SpanKind.INTERNAL;
      const span = tracer.startSpan(nameOf(request), { kind }, parent);
      // Without an SDK there is nothing to activate.
      if (parent === ROOT_CONTEXT && span.spanContext().traceId === INVALID_TRACEID) return;
      request.contextValues.set(contextKey, trace.setSpan(parent, span));
      if (!anonymous && span.isRecording()) span.setAttributes(endsOf(request));
    },
    interceptor: (next) => (request) => {
      const active = request.contextValues.get(contextKey);
      if (active === undefined) return next(request);
      const response = callIn(active, next, request);
      // A streaming handler runs while its messages are read, which is long after `next` has returned.
      if (!request.stream) return response;
      return response.then((answer) =>
        answer.stream ? { ...answer, message: within(active, answer.message) } : answer,
      );
    },
    onAnswer: (answer) => {
      const span = spanOf(answer.contextValues);
      if (span?.isRecording() !== true) return;
      if (!anonymous && !isRpcProtocol(answer.protocol)) span.setAttribute("url.path", answer.path);
      endRequest(span, answer);
    },
    startShared: (about) => startShared(tracer, about),
  };
}

/**
 * Returns the active context of a request that another server has passed on, if that server records a span of it, as
 * OpenTelemetry's instrumentation of node:http does. On a connection of our own, what is active may be of another
 * request.
 */
function contextAround({ isMounted }: AdmitRequest): Context | undefined {
  if (!isMounted) return undefined;
  const active = context.active();
  return trace.getSpan(active)?.isRecording() === true ? active : undefined;
}

const headerGetter: TextMapGetter<AdmitRequest["header"]> = {
  get: (header, name) => header.get(name) ?? undefined,
  keys: () => [],
};

/** Returns the name that is known before a request is answered: that of a request that matches nothing comes then. */
function nameOf({ protocol, procedure, httpMethod, httpRoute }: AdmitRequest): string {
  if (isRpcProtocol(protocol) && procedure !== undefined) return procedure.slice(1);
  return httpRoute === undefined ? "HTTP" : `${httpMethod} ${httpRoute}`;
}

/** Returns the attributes of the two ends of a request. */
function endsOf({ header, origin, peer }: AdmitRequest): Attributes {
  const userAgent = header.get("user-agent");
  const server = URL.parse(origin);
  return {
    ...(peer.address !== "" && { "client.address": peer.address }),
    ...(peer.port > 0 && { "client.port": peer.port }),
    ...(server !== null && { "server.address": server.hostname }),
    ...(server !== null && server.port !== "" && { "server.port": Number(server.port) }),
    ...(userAgent !== null && { "user_agent.original": userAgent }),
  };
}

function endRequest(span: Span, answer: AnsweredRequest): void {
  const isRpc = isRpcProtocol(answer.protocol);
  const attributes = isRpc ? rpcAttributes(answer) : httpAttributes(answer);
  span.updateName(isRpc ? rpcName(attributes) : httpName(answer, attributes));
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
      const next = (): Promise<IteratorResult<T>> => iterator.next();
      const end = (value: unknown): Promise<IteratorResult<T>> =>
        iterator.return?.(value) ?? Promise.resolve({ done: true, value: undefined });
      return { next: () => callIn(active, next, undefined), return: (value) => callIn(active, end, value) };
    },
  };
}

function nothing(): void {}
