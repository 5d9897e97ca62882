import type {
  DescMessage,
  DescMethod,
  DescMethodStreaming,
  DescMethodUnary,
  Message,
  MessageInitShape,
} from "@bufbuild/protobuf";
import {
  Code,
  ConnectError,
  type ContextValues,
  createContextValues,
  type Interceptor,
  type StreamResponse,
  type Transport,
  type UnaryRequest,
  type UnaryResponse,
} from "@connectrpc/connect";
import { type Compression, createMethodUrl, runStreamingCall, runUnaryCall } from "@connectrpc/connect/protocol";
import { defaultReadMaxBytes, maxTimerMs } from "@protoport/gateway/exchange";
import { type OptionNames, refuseUnknownOptions, required, stringOr } from "@protoport/gateway/options";
import { maxMessageBytes } from "@protoport/gateway/messages";
import { brotli, gzip, zstd } from "@protoport/gateway/forward";
import {
  createUpstream,
  requireRange,
  type Upstream,
  type UpstreamOptions,
  type UpstreamTls,
} from "../upstreams/index.ts";
import { type CallSettings, MessageMethod } from "./client-method.ts";
import type { CallInit } from "./outgoing-call.ts";
import { type HeadersInit, readRequestFields } from "./request-fields.ts";
import { Retries, type RetryPolicy, retryPolicyNames } from "./retries.ts";
import { PromisedStream, type StreamCallResponse } from "./stream-call.ts";
import { PromisedCall, type UnaryCallResponse } from "./unary-call.ts";

/** Options for {@link createGrpcTransport}. */
export interface GrpcTransportOptions {
  /**
   * The server's address: `http://host:port`, `https://host:port`, `unix:/path`, or `dns:host:port`, which resolves to
   * one or more servers. All addresses use HTTP/2. An upstream is also accepted, and stays open when the transport is
   * disposed of.
   */
  readonly baseUrl: string | Upstream;
  /** Connect's interceptors. The first interceptor is called first. */
  readonly interceptors?: readonly Interceptor[];
  /**
   * For `https:`: trusted certificates (`ca`), client certificate (`cert`, `key`), the server's name (`servername`).
   */
  readonly tls?: UpstreamTls;
  /** Maximum connections, from 1 to 1,000. A connection is opened when no other has a free stream. Default 100. */
  readonly connections?: number;
  /** Compression for messages with at least {@link compressMinBytes}. Messages are not compressed by default. */
  readonly sendCompression?: "gzip" | "br" | "zstd";
  /** Size in bytes from which messages are compressed. Default 1,024. */
  readonly compressMinBytes?: number;
  /**
   * Maximum bytes in a response message, both compressed and uncompressed. A call with a larger message fails with
   * `ResourceExhausted`. Default 4 MiB.
   */
  readonly readMaxBytes?: number;
  /**
   * Maximum bytes in a request message before compression. A call with a larger message fails with `ResourceExhausted`.
   * Default 4 MiB.
   */
  readonly writeMaxBytes?: number;
  /** Timeout in milliseconds for calls without `timeoutMs`. Default 0, which means no timeout. */
  readonly defaultTimeoutMs?: number;
  /**
   * If no data is received for this many milliseconds while calls are in flight, the client sends a PING. The
   * connection is closed if the PING is not acknowledged within the same time, at most 20 s. Default 20 s. After two
   * PINGs without a response in between, the interval is at least 310 s, because gRPC servers close connections that
   * send more PINGs.
   */
  readonly keepaliveMs?: number;
  /**
   * Whether calls wait until their deadline if no server is reachable and healthy (gRPC's "wait for ready"). By
   * default, calls fail immediately.
   */
  readonly waitForReady?: boolean;
  /**
   * Which failed calls are retried. `"transparent"`, the default, retries a call once if it was certainly not
   * processed. `"off"` retries no calls. A policy also retries calls that may have been processed, until the response
   * begins.
   */
  readonly retry?: RetryPolicy | "transparent" | "off";
  /** Whether code that encodes and decodes messages may be generated at run time. Default true. */
  readonly codegen?: boolean;
}

const grpcTransportOptionNames: OptionNames<GrpcTransportOptions> = {
  baseUrl: required,
  interceptors: true,
  tls: true,
  connections: true,
  sendCompression: true,
  compressMinBytes: true,
  readMaxBytes: true,
  writeMaxBytes: true,
  defaultTimeoutMs: true,
  keepaliveMs: true,
  waitForReady: true,
  retry: stringOr(retryPolicyNames),
  codegen: true,
};

/** A transport for Connect's clients. The transport keeps its connections open until it is disposed of. */
export interface GrpcTransport extends Transport, AsyncDisposable {}

/**
 * Creates a transport that calls a gRPC server over HTTP/2 with `@protoport/gateway/http2-client`. The transport connects at
 * the first call.
 *
 * A call is retried once if the server refused its stream, or sent a GOAWAY that excludes the stream. Other calls are
 * retried only if {@link GrpcTransportOptions.retry} is a policy.
 *
 * `await using`, or `[Symbol.asyncDispose]()`, closes the transport. Queued calls then fail with `Unavailable`, and
 * calls in flight may finish.
 *
 * @throws TypeError for an unknown option or an invalid `baseUrl`; RangeError for a number out of range; Error if a
 * certificate or key cannot be parsed
 */
export function createGrpcTransport(options: GrpcTransportOptions): GrpcTransport {
  refuseUnknownOptions(options, grpcTransportOptionNames, "createGrpcTransport");
  return new Http2GrpcTransport(options);
}

class Http2GrpcTransport implements GrpcTransport {
  readonly #baseUrl: string;
  readonly #interceptors: Interceptor[];
  readonly #defaultTimeoutMs: number;
  readonly #settings: CallSettings;
  readonly #upstream: Upstream;
  readonly #ownsUpstream: boolean;
  readonly #retries: Retries;
  readonly #methods = new WeakMap<DescMethod, MessageMethod>();

  constructor(options: GrpcTransportOptions) {
    const { baseUrl, interceptors = [], tls, defaultTimeoutMs = 0 } = options;
    const { connections, keepaliveMs, compressMinBytes = 1024 } = options;
    const { readMaxBytes = defaultReadMaxBytes, writeMaxBytes = defaultReadMaxBytes } = options;
    requireRange("compressMinBytes", compressMinBytes, 0, maxMessageBytes);
    requireRange("readMaxBytes", readMaxBytes, 1, maxMessageBytes);
    requireRange("writeMaxBytes", writeMaxBytes, 1, maxMessageBytes);
    requireRange("defaultTimeoutMs", defaultTimeoutMs, 0, Number.MAX_SAFE_INTEGER);
    this.#ownsUpstream = typeof baseUrl === "string";
    this.#upstream = openTransportUpstream(baseUrl, {
      ...(tls && { tls }),
      ...(connections !== undefined && { connections }),
      ...(keepaliveMs !== undefined && { keepaliveMs }),
    });
    const { scheme, authority } = this.#upstream;
    this.#baseUrl = `${scheme}://${authority}`;
    this.#interceptors = [...interceptors];
    this.#retries = new Retries(options.retry ?? "transparent");
    this.#defaultTimeoutMs = defaultTimeoutMs;
    this.#settings = {
      scheme,
      authority,
      sendCompression: findCompression(options.sendCompression),
      acceptCompression: compressions,
      offersCompression: true,
      compressMinBytes,
      readMaxBytes,
      writeMaxBytes,
      waitsForReady: options.waitForReady ?? false,
      receiver: "client",
      codegen: options.codegen ?? true,
    };
  }

  unary<I extends DescMessage, O extends DescMessage>(
    method: DescMethodUnary<I, O>,
    signal: AbortSignal | undefined,
    timeoutMs: number | undefined,
    header: HeadersInit | undefined,
    input: MessageInitShape<I>,
    contextValues?: ContextValues,
  ): Promise<UnaryResponse<I, O>> {
    const callTimeoutMs = this.#timeoutOf(timeoutMs);
    const send = async (
      callSignal: AbortSignal | undefined,
      fields: HeadersInit | undefined,
      message: unknown,
    ): Promise<UnaryResponse<I, O>> => {
      const response = await callUnary(this.#init(method, callSignal, callTimeoutMs, fields), message);
      return { stream: false, service: method.parent, method, ...(response as DecodedUnary<O>) };
    };
    if (this.#interceptors.length === 0) return send(signal, header, input);
    return runUnaryCall<I, O>({
      ...this.#interception(signal, callTimeoutMs),
      req: { stream: false, method, message: input, ...this.#request(method, header, contextValues) },
      next: (request) => send(request.signal, request.header, request.message),
    });
  }

  stream<I extends DescMessage, O extends DescMessage>(
    method: DescMethodStreaming<I, O>,
    signal: AbortSignal | undefined,
    timeoutMs: number | undefined,
    header: HeadersInit | undefined,
    input: AsyncIterable<MessageInitShape<I>>,
    contextValues?: ContextValues,
  ): Promise<StreamResponse<I, O>> {
    const callTimeoutMs = this.#timeoutOf(timeoutMs);
    const send = async (
      callSignal: AbortSignal | undefined,
      fields: HeadersInit | undefined,
      messages: AsyncIterable<unknown>,
    ): Promise<StreamResponse<I, O>> => {
      const response = await callStream(this.#init(method, callSignal, callTimeoutMs, fields), messages);
      return { stream: true, service: method.parent, method, ...(response as DecodedStream<O>) };
    };
    if (this.#interceptors.length === 0) return send(signal, header, input);
    return runStreamingCall<I, O>({
      ...this.#interception(signal, callTimeoutMs),
      req: { stream: true, method, message: input, ...this.#request(method, header, contextValues) },
      next: (request) => send(request.signal, request.header, request.message),
    });
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.#ownsUpstream ? this.#upstream.close() : Promise.resolve();
  }

  /** Returns the timeout in milliseconds. As in Connect, 0 or less means no timeout. @throws ConnectError for NaN */
  #timeoutOf(timeoutMs: number = this.#defaultTimeoutMs): number | undefined {
    if (Number.isNaN(timeoutMs)) throw new ConnectError("timeoutMs must be a number, got NaN", Code.InvalidArgument);
    return timeoutMs > 0 && timeoutMs < Number.POSITIVE_INFINITY ? timeoutMs : undefined;
  }

  #init(
    desc: DescMethod,
    signal: AbortSignal | undefined,
    timeoutMs: number | undefined,
    header: HeadersInit | undefined,
  ): CallInit<Message> {
    let method = this.#methods.get(desc);
    if (method === undefined) this.#methods.set(desc, (method = new MessageMethod(desc, this.#settings)));
    const fields = readRequestFields(header);
    return { upstream: this.#upstream, method, fields, signal, timeoutMs, retries: this.#retries };
  }

  #interception(signal: AbortSignal | undefined, timeoutMs: number | undefined): Interception {
    return {
      interceptors: this.#interceptors,
      ...(signal && { signal }),
      // Connect passes the timeout to setTimeout, which fires after 1 ms for values above the timer's maximum.
      ...(timeoutMs !== undefined && { timeoutMs: Math.min(timeoutMs, maxTimerMs) }),
    };
  }

  /** Returns the request that interceptors get, without its message. */
  #request(
    method: DescMethod,
    header: HeadersInit | undefined,
    contextValues: ContextValues | undefined,
  ): InterceptedRequest {
    return {
      service: method.parent,
      requestMethod: "POST",
      url: createMethodUrl(this.#baseUrl, method),
      header: new Headers(header),
      contextValues: contextValues ?? createContextValues(),
    };
  }
}

/** A response whose messages have the RPC's types. */
type DecodedUnary<O extends DescMessage> = Pick<UnaryResponse<DescMessage, O>, "header" | "message" | "trailer">;
type DecodedStream<O extends DescMessage> = Pick<StreamResponse<DescMessage, O>, "header" | "message" | "trailer">;

type Interception = Pick<Parameters<typeof runUnaryCall>[0], "interceptors" | "signal" | "timeoutMs">;
type InterceptedRequest = Pick<UnaryRequest, "service" | "requestMethod" | "url" | "header" | "contextValues">;

async function callUnary(init: CallInit<Message>, input: unknown): Promise<UnaryCallResponse> {
  const enveloped = init.method.envelop(input);
  const request = enveloped instanceof Promise ? await enveloped : enveloped;
  return new Promise((resolve, reject) => new PromisedCall(init, request, resolve, reject).start());
}

function callStream(init: CallInit<Message>, input: AsyncIterable<unknown>): Promise<StreamCallResponse> {
  return new Promise((resolve, reject) => new PromisedStream(init, input, resolve, reject).start());
}

/** The compressions that responses may use. The first compression is preferred. */
const compressions: readonly Compression[] = [gzip, brotli, zstd];

function findCompression(name: string | undefined): Compression | undefined {
  const selected = compressions.find((compression) => compression.name === name);
  if (name === undefined || selected !== undefined) return selected;
  throw new TypeError(`sendCompression must be one of "gzip", "br" or "zstd", got "${name}"`);
}

function openTransportUpstream(baseUrl: string | Upstream, options: Omit<UpstreamOptions, "addresses">): Upstream {
  if (typeof baseUrl === "string") return createUpstream({ ...options, addresses: baseUrl });
  const [misplaced] = Object.keys(options);
  if (misplaced === undefined) return baseUrl;
  throw new TypeError(`${misplaced} must be set in createUpstream, because baseUrl is an upstream`);
}
