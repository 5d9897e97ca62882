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
import type { AdmitRequest, CompletedRequest } from "@protoport/gateway/fetch";
import { wrapMessages } from "@protoport/gateway/messages";
import { refuseUnknownOptions } from "@protoport/gateway/options";
import {
  type Attributes,
  callEndAttributes,
  httpAttributes,
  isRpcProtocol,
  type MeasuredCall,
  type MeasuredCallEnd,
  rpcAttributes,
  rpcMethodOf,
} from "../conventions/index.ts";
import { callContextKey, contextKey, runInContext, spanOf } from "./request-context.ts";

/** Options for {@link createTracing}. */
export interface TracingOptions {
  /** Whether spans omit addresses, user agents and paths, which identify callers and resources. Default: false. */
  readonly anonymous?: boolean;
}

/** Gateway hooks that create a span for each request, and a function that creates a span for shared work. */
export interface Tracing {
  readonly onRequest: (request: AdmitRequest) => void;
  /** Must be the outermost interceptor, so that the span is active in all other interceptors and in the handler. */
  readonly interceptor: Interceptor;
  readonly onResponse: (request: CompletedRequest) => void;
  /** Creates a client span below the request span for each upstream call. Pass the function to `createProxy`. */
  readonly onUpstreamCall: (call: MeasuredCall) => ((end: MeasuredCallEnd) => void) | undefined;
  /** Starts the span for shared work. Call the returned function at the end, with the error if the work failed. */
  readonly startShared: (about: SharedWork) => (error?: unknown) => void;
}

/** Work that is done for several requests together, such as a batch. */
export interface SharedWork {
  readonly name: string;
  readonly attributes: Attributes;
  /** Each request's context values. */
  readonly requests: readonly (ContextValues | undefined)[];
}

/** The instrumentation scope for spans and metrics. */
export const scopeName = "@protoport/gateway";

/**
 * Creates tracing hooks. The hooks use the registered SDK, even if the SDK is registered later.
 *
 * Names and attributes follow the semantic conventions. Attributes are set only on recording spans, because most
 * requests are not sampled. Therefore, a sampler gets only the name, the kind and the parent.
 *
 * @throws TypeError for unknown options
 */
export function createTracing(options: TracingOptions = {}): Tracing {
  refuseUnknownOptions(options, { anonymous: true }, "createTracing");
  const { anonymous = false } = options;
  const tracer = trace.getTracer(scopeName);
  return {
    onRequest: (request) => {
      const outer = outerContextOf(request);
      const parent = outer ?? propagation.extract(ROOT_CONTEXT, request.header, headerGetter);
      const kind = outer === undefined ? SpanKind.SERVER : SpanKind.INTERNAL;
      const span = tracer.startSpan(initialNameOf(request), { kind }, parent);
      // Without an SDK, there is no span or context to activate.
      if (parent === ROOT_CONTEXT && span.spanContext().traceId === INVALID_TRACEID) return;
      request.contextValues.set(contextKey, trace.setSpan(parent, span));
      if (!anonymous && span.isRecording()) span.setAttributes(connectionAttributes(request));
    },
    interceptor: (next) => (request) => {
      const active = request.contextValues.get(contextKey);
      if (active === undefined) return next(request);
      const response = runInContext(active, next, request);
      // A streaming handler runs while its messages are read, after `next` has returned. The context is therefore
      // activated for reads too.
      if (!request.stream) return response;
      return response.then((result) =>
        result.stream ? { ...result, message: wrapMessages(result.message, iterateInContext(active)) } : result,
      );
    },
    onResponse: (request) => {
      const span = spanOf(request.contextValues);
      if (span?.isRecording() !== true) return;
      if (!anonymous && !isRpcProtocol(request.protocol)) span.setAttribute("url.path", request.path);
      endRequest(span, request);
    },
    onUpstreamCall: (call) => startCall(tracer, call),
    startShared: (about) => startShared(tracer, about),
  };
}

/**
 * Returns the active context if the gateway is mounted in another server that records a span, as OpenTelemetry's
 * node:http instrumentation does. On the gateway's own connections, the active context may belong to another request.
 */
function outerContextOf({ isMounted }: AdmitRequest): Context | undefined {
  if (!isMounted) return undefined;
  const active = context.active();
  return trace.getSpan(active)?.isRecording() === true ? active : undefined;
}

const headerGetter: TextMapGetter<AdmitRequest["header"]> = {
  get: (header, name) => header.get(name) ?? undefined,
  keys: () => [],
};

/** Returns the span name when a request starts. If no route matches, the name is set when the request ends. */
function initialNameOf({ protocol, procedure, httpMethod, httpRoute }: AdmitRequest): string {
  if (isRpcProtocol(protocol) && procedure !== undefined) return procedure.slice(1);
  return httpRoute === undefined ? "HTTP" : `${httpMethod} ${httpRoute}`;
}

function connectionAttributes({ header, origin, peer }: AdmitRequest): Attributes {
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

function endRequest(span: Span, request: CompletedRequest): void {
  const isRpc = isRpcProtocol(request.protocol);
  const attributes = isRpc ? rpcAttributes(request) : httpAttributes(request);
  span.updateName(isRpc ? rpcName(attributes) : httpName(request, attributes));
  span.setAttributes(attributes);
  if (attributes["error.type"] !== undefined) span.setStatus({ code: SpanStatusCode.ERROR });
  span.end();
}

// By the conventions, the span for an unknown method (`_OTHER`) is named after the RPC system.
function rpcName(attributes: Attributes): string {
  return String(attributes[attributes["rpc.method"] === "_OTHER" ? "rpc.system.name" : "rpc.method"]);
}

// By the conventions, the span name for an unknown method (`_OTHER`) contains `HTTP`.
function httpName({ httpRoute }: CompletedRequest, attributes: Attributes): string {
  const method = attributes["http.request.method"];
  return `${method === "_OTHER" ? "HTTP" : method}${httpRoute === undefined ? "" : ` ${httpRoute}`}`;
}

function startCall(tracer: Tracer, call: MeasuredCall): ((end: MeasuredCallEnd) => void) | undefined {
  const { method, upstream, contextValues } = call;
  const parent = contextValues.get(contextKey);
  if (parent === undefined) return undefined;
  const span = tracer.startSpan(rpcMethodOf(method), { kind: SpanKind.CLIENT }, parent);
  contextValues.set(callContextKey, trace.setSpan(parent, span));
  return ({ error }) => {
    if (span.isRecording()) {
      span.setAttributes({
        "rpc.system.name": "grpc",
        "rpc.method": rpcMethodOf(method),
        ...serverAttributes(upstream),
      });
      span.setAttributes(callEndAttributes(error?.code));
      if (error !== undefined) span.setStatus({ code: SpanStatusCode.ERROR });
    }
    span.end();
  };
}

/** Returns an upstream server's attributes. */
export function serverAttributes({ name }: MeasuredCall["upstream"]): Attributes {
  // By the conventions, the address of a Unix socket is its path.
  const url = name.startsWith("unix:") ? null : URL.parse(`http://${name}`);
  if (url === null) return { "server.address": name.replace(/^unix:/, "") };
  return { "server.address": url.hostname, ...(url.port !== "" && { "server.port": Number(url.port) }) };
}

function startShared(tracer: Tracer, { name, attributes, requests }: SharedWork): (error?: unknown) => void {
  const spans = requests.flatMap((values) => (values && spanOf(values)) ?? []).filter((span) => span.isRecording());
  const [first] = spans;
  if (first === undefined) return noop;
  // A span has only one parent, so the first request's span is the parent. Links point to the spans of all requests, up
  // to the SDK's limit.
  const parent = trace.setSpan(ROOT_CONTEXT, first);
  const links = spans.map((span) => ({ context: span.spanContext() }));
  const sharedSpan = tracer.startSpan(name, { kind: SpanKind.CLIENT, attributes, links }, parent);
  return (error) => {
    if (error !== undefined) sharedSpan.setAttribute("error.type", "_OTHER").setStatus({ code: SpanStatusCode.ERROR });
    sharedSpan.end();
  };
}

function iterateInContext(active: Context): <T>(messages: AsyncIterable<T>) => AsyncIterable<T> {
  return <T>(messages: AsyncIterable<T>) => ({
    [Symbol.asyncIterator]() {
      const iterator = messages[Symbol.asyncIterator]();
      const next = (): Promise<IteratorResult<T>> => iterator.next();
      const end = (value: unknown): Promise<IteratorResult<T>> =>
        iterator.return?.(value) ?? Promise.resolve({ done: true, value: undefined });
      return { next: () => runInContext(active, next, undefined), return: (value) => runInContext(active, end, value) };
    },
  });
}

function noop(): void {}
