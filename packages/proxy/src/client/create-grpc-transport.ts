import type {
  DescMessage,
  DescMethod,
  DescMethodStreaming,
  DescMethodUnary,
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
import { defaultReadMaxBytes, timerMsMax } from "@plantstore/gateway/exchange";
import { messageBytesMax } from "@plantstore/gateway/internal/protocols";
import { type OptionNames, refuseUnknownOptions, required } from "@plantstore/gateway/options";
import {
  createUpstream,
  requireRange,
  type Upstream,
  type UpstreamOptions,
  type UpstreamTls,
} from "../upstreams/index.ts";
import { brotli, gzip, zstd } from "@plantstore/gateway/internal/compression";
import { type CallSettings, ClientMethod } from "./client-method.ts";
import type { CallInit } from "./outgoing-call.ts";
import { type HeadersInit, readRequestFields } from "./request-fields.ts";
import { Retries, type RetryPolicy, retryPolicyNames } from "./retries.ts";
import { type StreamAnswer, StreamCall } from "./stream-call.ts";
import { PromisedCall, type UnaryAnswer } from "./unary-call.ts";

/** Options of {@link createGrpcTransport}. */
export interface GrpcTransportOptions {
  /**
   * Where the server is: `http://host:port`, `https://host:port`, `unix:/path`, or `dns:host:port`, each of whose
   * addresses is a server. HTTP/2 on all of them. Or an upstream, which stays open when the transport is disposed of.
   */
  readonly baseUrl: string | Upstream;
  /** Connect's interceptors; the first one sees a call first. */
  readonly interceptors?: readonly Interceptor[];
  /** For `https:`: certificates to trust (`ca`), our own (`cert` and `key`), the name of the server (`servername`). */
  readonly tls?: UpstreamTls;
  /** Connections at most, each opened when all streams of the others are taken: from 1 to 1,000. Default 100. */
  readonly connections?: number;
  /** How messages are compressed from {@link compressMinBytes} on. By default they are not. */
  readonly sendCompression?: "gzip" | "br" | "zstd";
  /** Bytes of the smallest message that is compressed. Default 1,024. */
  readonly compressMinBytes?: number;
  /** Bytes that a message of an answer may have, compressed or not; `ResourceExhausted` above. Default 4 MiB. */
  readonly readMaxBytes?: number;
  /** Bytes that a message of a request may have, before compression; `ResourceExhausted` above. Default 4 MiB. */
  readonly writeMaxBytes?: number;
  /** Milliseconds that a call may take if it says nothing itself. By default, and with 0, there is no deadline. */
  readonly defaultTimeoutMs?: number;
  /**
   * Milliseconds of silence, while calls wait, after which the server is sent a PING; if it does not answer within as
   * long, and 20 s at most, the connection is given up. Default 310 s. A server of gRPC ends connections that do so more
   * than once in 5 minutes.
   */
  readonly keepaliveMs?: number;
  /**
   * Whether calls wait, each until its deadline, while no server can be reached or none is healthy, as gRPC's
   * "wait for ready" has it. Default false: they fail at once.
   */
  readonly waitForReady?: boolean;
  /**
   * When a call that has failed is sent again: `"transparent"`, the default, once if it was certainly not processed;
   * `"off"`, never; or also by a policy, with a back-off and a budget, as long as its answer has not begun.
   */
  readonly retry?: RetryPolicy | "transparent" | "off";
  /** Whether functions that read and write messages are generated at run time, as by a gateway. Default true. */
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
  retry: retryPolicyNames,
  codegen: true,
};

/** A transport for Connect's clients, with connections that it keeps until it is disposed of. */
export interface GrpcTransport extends Transport, AsyncDisposable {}

/**
 * Creates a transport that calls a gRPC server over the gateway's own HTTP/2. Connects when the first call is made.
 *
 * A call that certainly was not processed is sent again, once: one that the server has refused, or that came after the last
 * one a server takes before it goes away. Nothing else is ever repeated.
 *
 * `await using`, or `[Symbol.asyncDispose]()`, closes it: calls that wait fail with `Unavailable`, others may end.
 *
 * @throws TypeError for options that do not exist, and a `baseUrl` that is no address of a server; RangeError for a number out of range; Error for
 * certificates or keys that cannot be read
 */
export function createGrpcTransport(options: GrpcTransportOptions): GrpcTransport {
  refuseUnknownOptions(options, grpcTransportOptionNames, "createGrpcTransport");
  return new OwnGrpcTransport(options);
}

class OwnGrpcTransport implements GrpcTransport {
  readonly #baseUrl: string;
  readonly #interceptors: Interceptor[];
  readonly #defaultTimeoutMs: number;
  readonly #settings: CallSettings;
  readonly #upstream: Upstream;
  readonly #ownsUpstream: boolean;
  readonly #retries: Retries;
  readonly #methods = new WeakMap<DescMethod, ClientMethod>();

  constructor(options: GrpcTransportOptions) {
    const { baseUrl, interceptors = [], tls, defaultTimeoutMs = 0 } = options;
    const { connections, keepaliveMs, compressMinBytes = 1024 } = options;
    const { readMaxBytes = defaultReadMaxBytes, writeMaxBytes = defaultReadMaxBytes } = options;
    requireRange("compressMinBytes", compressMinBytes, 0, messageBytesMax);
    requireRange("readMaxBytes", readMaxBytes, 1, messageBytesMax);
    requireRange("writeMaxBytes", writeMaxBytes, 1, messageBytesMax);
    requireRange("defaultTimeoutMs", defaultTimeoutMs, 0, Number.MAX_SAFE_INTEGER);
    this.#ownsUpstream = typeof baseUrl === "string";
    this.#upstream = openUpstream(baseUrl, {
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
    const deadlineMs = this.#deadlineOf(timeoutMs);
    const send = async (
      callSignal: AbortSignal | undefined,
      fields: HeadersInit | undefined,
      message: unknown,
    ): Promise<UnaryResponse<I, O>> => {
      const answer = await callUnary(this.#init(method, callSignal, deadlineMs, fields), message);
      return { stream: false, service: method.parent, method, ...(answer as DecodedUnary<O>) };
    };
    if (this.#interceptors.length === 0) return send(signal, header, input);
    return runUnaryCall<I, O>({
      ...this.#interception(signal, deadlineMs),
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
    const deadlineMs = this.#deadlineOf(timeoutMs);
    const send = async (
      callSignal: AbortSignal | undefined,
      fields: HeadersInit | undefined,
      messages: AsyncIterable<unknown>,
    ): Promise<StreamResponse<I, O>> => {
      const answer = await callStream(this.#init(method, callSignal, deadlineMs, fields), messages);
      return { stream: true, service: method.parent, method, ...(answer as DecodedStream<O>) };
    };
    if (this.#interceptors.length === 0) return send(signal, header, input);
    return runStreamingCall<I, O>({
      ...this.#interception(signal, deadlineMs),
      req: { stream: true, method, message: input, ...this.#request(method, header, contextValues) },
      next: (request) => send(request.signal, request.header, request.message),
    });
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.#ownsUpstream ? this.#upstream.close() : Promise.resolve();
  }

  /**
   * As in Connect's transports, 0 or less is no deadline at all.
   *
   * @throws ConnectError `InvalidArgument` for what is no number
   */
  #deadlineOf(timeoutMs: number = this.#defaultTimeoutMs): number | undefined {
    if (Number.isNaN(timeoutMs)) throw new ConnectError("timeoutMs is not a number", Code.InvalidArgument);
    return timeoutMs > 0 && timeoutMs < Number.POSITIVE_INFINITY ? timeoutMs : undefined;
  }

  #init(
    desc: DescMethod,
    signal: AbortSignal | undefined,
    timeoutMs: number | undefined,
    header: HeadersInit | undefined,
  ): CallInit {
    let method = this.#methods.get(desc);
    if (method === undefined) this.#methods.set(desc, (method = new ClientMethod(desc, this.#settings)));
    const fields = readRequestFields(header);
    return { upstream: this.#upstream, method, fields, signal, timeoutMs, retries: this.#retries };
  }

  #interception(signal: AbortSignal | undefined, timeoutMs: number | undefined): Interception {
    return {
      interceptors: this.#interceptors,
      ...(signal && { signal }),
      // Connect has a timer of its own, for which anything longer is a millisecond.
      ...(timeoutMs !== undefined && { timeoutMs: Math.min(timeoutMs, timerMsMax) }),
    };
  }

  /** What interceptors see of a request besides its messages. */
  #request(method: DescMethod, header: HeadersInit | undefined, contextValues: ContextValues | undefined): SeenRequest {
    return {
      service: method.parent,
      requestMethod: "POST",
      url: createMethodUrl(this.#baseUrl, method),
      header: new Headers(header),
      contextValues: contextValues ?? createContextValues(),
    };
  }
}

/** An answer whose messages were decoded as those of the RPC. */
type DecodedUnary<O extends DescMessage> = Pick<UnaryResponse<DescMessage, O>, "header" | "message" | "trailer">;
type DecodedStream<O extends DescMessage> = Pick<StreamResponse<DescMessage, O>, "header" | "message" | "trailer">;

type Interception = Pick<Parameters<typeof runUnaryCall>[0], "interceptors" | "signal" | "timeoutMs">;
type SeenRequest = Pick<UnaryRequest, "service" | "requestMethod" | "url" | "header" | "contextValues">;

async function callUnary(init: CallInit, input: unknown): Promise<UnaryAnswer> {
  const enveloped = init.method.envelop(input);
  const request = enveloped instanceof Promise ? await enveloped : enveloped;
  return new Promise((resolve, reject) => new PromisedCall(init, request, resolve, reject).start());
}

function callStream(init: CallInit, input: AsyncIterable<unknown>): Promise<StreamAnswer> {
  return new Promise((resolve, reject) => new StreamCall(init, input, resolve, reject).start());
}

/** What is accepted of answers, the first one first. */
const compressions: readonly Compression[] = [gzip, brotli, zstd];

function findCompression(wanted: string | undefined): Compression | undefined {
  const found = compressions.find(({ name }) => name === wanted);
  if (wanted === undefined || found !== undefined) return found;
  throw new TypeError(`sendCompression is "gzip", "br" or "zstd", not "${wanted}"`);
}

function openUpstream(baseUrl: string | Upstream, options: Omit<UpstreamOptions, "addresses">): Upstream {
  if (typeof baseUrl === "string") return createUpstream({ ...options, addresses: baseUrl });
  const [foreign] = Object.keys(options);
  if (foreign === undefined) return baseUrl;
  throw new TypeError(`${foreign} is an option of the upstream`);
}
