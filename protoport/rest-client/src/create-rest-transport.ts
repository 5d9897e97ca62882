import {
  create,
  type DescMessage,
  type DescMethod,
  type DescMethodStreaming,
  type DescMethodUnary,
  isMessage,
  type JsonReadOptions,
  type JsonWriteOptions,
  type Message,
  type MessageInitShape,
  type MessageShape,
  type Registry,
} from "@bufbuild/protobuf";
import {
  Code,
  ConnectError,
  type ContextValues,
  createContextValues,
  type Interceptor,
  type StreamResponse,
  type Transport,
  type UnaryResponse,
} from "@connectrpc/connect";
import {
  runStreamingCall,
  runUnaryCall,
  type UniversalClientFn,
  universalClientResponseFromFetch,
} from "@connectrpc/connect/protocol";
import { createTransport } from "@connectrpc/connect/protocol-connect";
import { concatBytes, defaultReadMaxBytes, maxTimerMs } from "@protoport/gateway/exchange";
import { ignoredJsonOptions, jsonOptionNames, memoize, maxMessageBytes } from "@protoport/gateway/messages";
import {
  integerBetween,
  type OptionNames,
  refuseIgnoredOptions,
  refuseUnknownOptions,
  required,
} from "@protoport/gateway/options";
import { selectorOf, withDetailTypes } from "@protoport/gateway/rest";
import { pageLocation, RestCalls } from "./rest-calls.ts";
import type { ReadErrorBody } from "./response-error.ts";
import { RestMethod } from "./rest-method.ts";

/** Options for {@link createRestTransport}. */
export interface RestTransportOptions {
  /** The API's URL: `https://host`, optionally with a path prefix. In a web page, the URL may be `/`. */
  readonly baseUrl: string;
  /**
   * Connect's interceptors. The first interceptor is the outermost. The `url` of requests contains the path template of
   * the first binding.
   */
  readonly interceptors?: readonly Interceptor[];
  /** The function that sends requests. Defaults to the runtime's `fetch`. */
  readonly fetch?: typeof fetch;
  /**
   * The message types in google.protobuf.Any fields and error details. Error details may also have the types in
   * google/rpc/error_details.proto.
   */
  readonly registry?: Registry;
  /**
   * Options for reading and writing JSON. By default, unknown fields are ignored. `alwaysEmitImplicit` is refused,
   * because fields with default values are never written. `recursionLimit` is also refused.
   */
  readonly jsonOptions?: Partial<JsonReadOptions & JsonWriteOptions>;
  /**
   * Returns the error for an error body in a custom format. If the function returns `undefined`, the body is read as
   * one of the known formats.
   */
  readonly readErrorBody?: ReadErrorBody;
  /**
   * What happens with RPCs without an annotation. `"fail"`, the default, rejects calls with `Unimplemented`.
   * `"connect"` uses Connect's protocol.
   */
  readonly onUnbound?: "fail" | "connect";
  /**
   * Maximum number of bytes in a response, or in each message of a stream. Above the limit, the call fails with
   * `ResourceExhausted`. Default 4 MiB, at most 4 GiB - 1.
   */
  readonly readMaxBytes?: number;
  /**
   * The timeout in milliseconds for calls without `timeoutMs`, at most 24 days, or 0 for no timeout. The timeout is
   * sent to the server. By default, unary calls have a timeout of 60 seconds, and streams have no timeout. The default
   * timeout is sent to the server only with Connect's protocol.
   */
  readonly defaultTimeoutMs?: number;
}

const restTransportOptionNames: OptionNames<RestTransportOptions> = {
  baseUrl: required,
  interceptors: true,
  fetch: true,
  registry: true,
  jsonOptions: jsonOptionNames,
  readErrorBody: true,
  onUnbound: true,
  readMaxBytes: integerBetween(1, maxMessageBytes),
  defaultTimeoutMs: integerBetween(0, maxTimerMs),
};

/** The protobuf-es JSON option that is refused because it would have no effect, with the reason. */
const ignoredByWriter = { alwaysEmitImplicit: "fields with default values are never written" };

// The default timeout for unary calls in milliseconds, as in nginx. Without a timeout, a server that keeps sending
// interim responses (RFC 9110 §15.2) would keep a call open indefinitely.
const unaryTimeoutMs = 60_000;

/**
 * Creates a transport for REST APIs. `google.api.http` annotations on the RPCs determine the requests. The transport
 * needs only fetch, so it works in browsers, Node, Deno, Bun and workers.
 *
 * A message is sent with the first binding that can represent the message: all path variables are set and match their
 * templates, and the query contains no map. The call fails with `InvalidArgument`, before a request is sent, if no
 * binding can represent the message or the path could also match another binding. Redirects are not followed.
 *
 * @throws TypeError for unknown options, JSON options without an effect, limits out of range, or an invalid `baseUrl`
 *
 * @example
 * ```ts
 * const library = createClient(LibraryService, createRestTransport({ baseUrl: "https://library.example" }));
 * const book = await library.getBook({ name: "shelves/1/books/2" });
 * ```
 */
export function createRestTransport(options: RestTransportOptions): Transport {
  refuseUnknownOptions(options, restTransportOptionNames, "createRestTransport");
  const { alwaysEmitImplicit = false, ...jsonOptions } = options.jsonOptions ?? {};
  const given = { ...jsonOptions, ...(alwaysEmitImplicit && { alwaysEmitImplicit }) };
  refuseIgnoredOptions(given, { ...ignoredJsonOptions, ...ignoredByWriter }, "jsonOptions");
  return new RestTransport(options);
}

class RestTransport implements Transport {
  readonly #interceptors: Interceptor[];
  readonly #defaultTimeoutMs: number | undefined;
  readonly #calls: RestCalls;
  readonly #fallback: Transport | undefined;
  readonly #methodOf = memoize((desc: DescMethod) => new RestMethod(desc, this.#calls.settings.messages));

  constructor(options: RestTransportOptions) {
    const { baseUrl, interceptors = [], registry, jsonOptions = {}, readErrorBody, defaultTimeoutMs } = options;
    const { readMaxBytes = defaultReadMaxBytes, fetch = globalThis.fetch } = options;
    const known = registry ?? jsonOptions.registry;
    const { useProtoFieldName = false, enumAsInteger = false, ignoreUnknownFields = true } = jsonOptions;
    const base = readBaseUrl(baseUrl);
    // Wraps `fetch`, because a browser's `fetch` throws if called as a method of another object.
    const send: typeof fetch = (input, init) => fetch(input, init);
    this.#interceptors = [...interceptors];
    this.#defaultTimeoutMs = defaultTimeoutMs;
    this.#calls = new RestCalls({
      baseUrl: base,
      fetch: send,
      messages: {
        write: { useProtoFieldName, enumAsInteger, ...(known && { registry: known }) },
        read: { unknownFields: ignoreUnknownFields ? "ignore" : "reject", ...(known && { registry: known }) },
        registry: known,
      },
      errors: { readErrorBody, registry: withDetailTypes(known) },
      readMaxBytes,
    });
    if (options.onUnbound !== "connect") return;
    const json = { ...jsonOptions, ...(known && { registry: known }) };
    const calls = { baseUrl: base, fetch: send, interceptors, readMaxBytes, jsonOptions: json };
    this.#fallback = createConnectFallback(calls);
  }

  async unary<I extends DescMessage, O extends DescMessage>(
    desc: DescMethodUnary<I, O>,
    signal: AbortSignal | undefined,
    timeoutMs: number | undefined,
    header: TransportHeaders | undefined,
    input: MessageInitShape<I>,
    contextValues?: ContextValues,
  ): Promise<UnaryResponse<I, O>> {
    const method = this.#methodOf(desc);
    const deadlineMs = this.#deadlineOf(timeoutMs);
    const isUnlimited = timeoutMs === undefined && this.#defaultTimeoutMs === undefined;
    const limitMs = isUnlimited ? unaryTimeoutMs : deadlineMs;
    if (method.rule === undefined) {
      return await this.#unbound(desc).unary(desc, signal, limitMs, header, input, contextValues);
    }
    return await runUnaryCall<I, O>({
      ...this.#interception(signal, limitMs),
      req: { stream: false, method: desc, message: input, ...this.#request(method, header, contextValues) },
      next: async (request) => {
        const call = { method, header: request.header, signal: request.signal, timeoutMs: deadlineMs };
        const result = await this.#calls.unary(call, request.message);
        const message = asMessage(desc.output, result.message);
        return {
          stream: false,
          service: desc.parent,
          method: desc,
          header: result.header,
          message,
          trailer: new Headers(),
        };
      },
    });
  }

  async stream<I extends DescMessage, O extends DescMessage>(
    desc: DescMethodStreaming<I, O>,
    signal: AbortSignal | undefined,
    timeoutMs: number | undefined,
    header: TransportHeaders | undefined,
    input: AsyncIterable<MessageInitShape<I>>,
    contextValues?: ContextValues,
  ): Promise<StreamResponse<I, O>> {
    const method = this.#methodOf(desc);
    const deadlineMs = this.#deadlineOf(timeoutMs);
    if (method.rule === undefined) {
      return await this.#unbound(desc).stream(desc, signal, deadlineMs, header, input, contextValues);
    }
    return await runStreamingCall<I, O>({
      ...this.#interception(signal, deadlineMs),
      req: { stream: true, method: desc, message: input, ...this.#request(method, header, contextValues) },
      next: async (request) => {
        const call = { method, header: request.header, signal: request.signal, timeoutMs: deadlineMs };
        const result = await this.#calls.stream(call, request.message);
        const message = asMessages(desc.output, result.messages);
        return {
          stream: true,
          service: desc.parent,
          method: desc,
          header: result.header,
          message,
          trailer: new Headers(),
        };
      },
    });
  }

  #unbound(desc: DescMethod): Transport {
    if (this.#fallback !== undefined) return this.#fallback;
    throw new ConnectError(`${selectorOf(desc)} has no google.api.http annotation`, Code.Unimplemented);
  }

  // A timeout of 0 or less means none, as in Connect's transports. A timer above the maximum would fire immediately.
  #deadlineOf(timeoutMs: number = this.#defaultTimeoutMs ?? 0): number | undefined {
    return timeoutMs <= 0 ? undefined : Math.min(timeoutMs, maxTimerMs);
  }

  #interception(signal: AbortSignal | undefined, timeoutMs: number | undefined): RestInterception {
    const interceptors = this.#interceptors;
    return { interceptors, ...(signal && { signal }), ...(timeoutMs !== undefined && { timeoutMs }) };
  }

  /** Returns the request for interceptors, without messages. */
  #request({ desc, rule }: RestMethod, header: TransportHeaders | undefined, contextValues: ContextValues | undefined) {
    return {
      service: desc.parent,
      requestMethod: rule?.httpMethod ?? "POST",
      url: this.#calls.settings.baseUrl + (rule?.pattern.pathTemplate ?? ""),
      header: new Headers(header),
      contextValues: contextValues ?? createContextValues(),
    };
  }
}

type TransportHeaders = ConstructorParameters<typeof Headers>[0];
type RestInterception = Pick<Parameters<typeof runUnaryCall>[0], "interceptors" | "signal" | "timeoutMs">;

/** Returns the normalized URL without a trailing slash. */
function readBaseUrl(text: string): string {
  const url = new URL(text, pageLocation().href);
  // Checks `href`, because `search` is empty for a URL that ends with "?", which would turn paths into a query.
  const isPlain = !/[?#]/.test(url.href) && url.username === "" && url.password === "";
  if (!/^https?:$/.test(url.protocol) || !isPlain)
    throw new TypeError(`baseUrl must be a URL such as "https://host", got "${text}"`);
  return url.href.replace(/\/+$/, "");
}

function asMessage<Desc extends DescMessage>(desc: Desc, message: Message): MessageShape<Desc> {
  return isMessage(message, desc) ? message : create(desc);
}

async function* asMessages<Desc extends DescMessage>(
  desc: Desc,
  messages: AsyncIterable<Message>,
): AsyncGenerator<MessageShape<Desc>, void> {
  for await (const message of messages) yield asMessage(desc, message);
}

/** Settings for calls to RPCs without a rule. */
interface ConnectCalls {
  readonly baseUrl: string;
  readonly fetch: typeof fetch;
  readonly interceptors: readonly Interceptor[];
  readonly readMaxBytes: number;
  readonly jsonOptions: object;
}

/** Creates the transport for RPCs without a rule: Connect's protocol with JSON, without streaming request bodies. */
function createConnectFallback(calls: ConnectCalls): Transport {
  const { baseUrl, interceptors, readMaxBytes, jsonOptions } = calls;
  const httpClient: UniversalClientFn = async ({ url, method, header, body, signal }) => {
    const pieces: Uint8Array[] = [];
    for await (const piece of body ?? []) pieces.push(piece);
    const bufferedBody = body === undefined ? {} : { body: new Uint8Array(concatBytes(pieces)) };
    const init = { method, headers: header, redirect: "manual", ...(signal && { signal }), ...bufferedBody } as const;
    return universalClientResponseFromFetch(await calls.fetch(url, init));
  };
  return createTransport({
    httpClient,
    baseUrl,
    useBinaryFormat: false,
    interceptors: [...interceptors],
    jsonOptions,
    acceptCompression: [],
    sendCompression: null,
    compressMinBytes: 0,
    readMaxBytes,
    writeMaxBytes: maxMessageBytes,
  });
}
