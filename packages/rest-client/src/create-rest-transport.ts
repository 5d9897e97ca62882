import type {
  DescMessage,
  DescMethod,
  DescMethodStreaming,
  DescMethodUnary,
  JsonReadOptions,
  JsonWriteOptions,
  Message,
  MessageInitShape,
  MessageShape,
  Registry,
} from "@bufbuild/protobuf";
import { create, isMessage } from "@bufbuild/protobuf";
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
import { runStreamingCall, runUnaryCall } from "@connectrpc/connect/protocol";
import { defaultReadMaxBytes, timerMsMax } from "@plantstore/gateway/exchange";
import { jsonOptionNames, memoize } from "@plantstore/gateway/internal/messages/json";
import { type OptionNames, refuseUnknownOptions, required } from "@plantstore/gateway/options";
import { selectorOf, withDetailTypes } from "@plantstore/gateway/rest";
import type { ReadErrorRecord } from "./answer-error.ts";
import { createConnectFallback } from "./connect-fallback.ts";
import { pageLocation } from "./page.ts";
import { RestCalls } from "./rest-calls.ts";
import { RestMethod } from "./rest-method.ts";

/** Options of {@link createRestTransport}. */
export interface RestTransportOptions {
  /** Where the API is: `https://host`, with the path before all of its paths if there is one. In a page it may be `/`. */
  readonly baseUrl: string;
  /** Connect's interceptors; the first one sees a call first. As `url` they see the template of the first binding. */
  readonly interceptors?: readonly Interceptor[];
  /** What sends requests. Default: that of the runtime. */
  readonly fetch?: typeof fetch;
  /**
   * The types that a google.protobuf.Any and the details of an error may hold; details also hold those of
   * google/rpc/error_details.proto.
   */
  readonly registry?: Registry;
  /** How JSON is read and written; unknown fields are ignored unless it says otherwise. Zeros are never written. */
  readonly jsonOptions?: Partial<JsonReadOptions & JsonWriteOptions>;
  /** Makes the error of an error record that no other API has; `undefined` leaves it to the known ones. */
  readonly readErrorRecord?: ReadErrorRecord;
  /** How RPCs without an annotation are called: `"fail"`, the default, with `Unimplemented`, or by Connect's protocol. */
  readonly onUnbound?: "fail" | "connect";
  /** Bytes that an answer, or a message of a stream, may have; `ResourceExhausted` above. Default 4 MiB. */
  readonly readMaxBytes?: number;
  /**
   * Milliseconds that a call without a `timeoutMs` of its own may take, at most 24 days; 0 for no deadline. Servers are
   * told this deadline. Default: a unary call fails after 60 seconds, of which servers are told by Connect's protocol
   * alone; streams have none.
   */
  readonly defaultTimeoutMs?: number;
}

const restTransportOptionNames: OptionNames<RestTransportOptions> = {
  baseUrl: required,
  interceptors: true,
  fetch: true,
  registry: true,
  jsonOptions: jsonOptionNames,
  readErrorRecord: true,
  onUnbound: true,
  readMaxBytes: true,
  defaultTimeoutMs: true,
};

/**
 * Milliseconds that a unary call may take if nobody has set a deadline: as long as nginx waits for a
 * response. Without it, a server that sends interim responses (RFC 9110 §15.2) for ever would keep a call for ever.
 */
const unaryTimeoutMs = 60_000;

/**
 * Creates a transport that calls a REST API by the `google.api.http` annotations of its RPCs, with nothing but fetch:
 * in browsers, Node, Deno, Bun and workers.
 *
 * A message goes by the first binding that can say it: whose path variables are set and fit, and whose query needs no
 * map. If there is none, the call fails with `InvalidArgument` before a request is sent; so does a message whose path
 * could be read as that of another resource. Redirects are not followed.
 *
 * @throws TypeError for options that do not exist, and a `baseUrl` that is none
 *
 * @example
 * ```ts
 * const library = createClient(LibraryService, createRestTransport({ baseUrl: "https://library.example" }));
 * const book = await library.getBook({ name: "shelves/1/books/2" });
 * ```
 */
export function createRestTransport(options: RestTransportOptions): Transport {
  refuseUnknownOptions(options, restTransportOptionNames, "createRestTransport");
  return new RestTransport(options);
}

class RestTransport implements Transport {
  readonly #interceptors: Interceptor[];
  readonly #defaultTimeoutMs: number | undefined;
  readonly #calls: RestCalls;
  readonly #fallback: Transport | undefined;
  readonly #methodOf = memoize((desc: DescMethod) => new RestMethod(desc, this.#calls.settings.messages));

  constructor(options: RestTransportOptions) {
    const { baseUrl, interceptors = [], registry, jsonOptions = {}, readErrorRecord, defaultTimeoutMs } = options;
    const { readMaxBytes = defaultReadMaxBytes, fetch = globalThis.fetch } = options;
    const known = registry ?? jsonOptions.registry;
    const { useProtoFieldName = false, enumAsInteger = false, ignoreUnknownFields = true } = jsonOptions;
    const base = readBaseUrl(baseUrl);
    // The fetch of a browser refuses to be a method of anything else.
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
      errors: { readErrorRecord, registry: withDetailTypes(known) },
      readMaxBytes,
    });
    if (options.onUnbound !== "connect") return;
    const json = { ...jsonOptions, alwaysEmitImplicit: false, ...(known && { registry: known }) };
    const calls = { baseUrl: base, fetch: send, interceptors, readMaxBytes, jsonOptions: json };
    this.#fallback = createConnectFallback(calls);
  }

  async unary<I extends DescMessage, O extends DescMessage>(
    desc: DescMethodUnary<I, O>,
    signal: AbortSignal | undefined,
    timeoutMs: number | undefined,
    header: HeadersInit | undefined,
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
        const answer = await this.#calls.unary(call, request.message);
        const message = asMessage(desc.output, answer.message);
        return {
          stream: false,
          service: desc.parent,
          method: desc,
          header: answer.header,
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
    header: HeadersInit | undefined,
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
        const answer = await this.#calls.stream(call, request.message);
        const message = asMessages(desc.output, answer.messages);
        return {
          stream: true,
          service: desc.parent,
          method: desc,
          header: answer.header,
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

  /** As in Connect's transports, 0 or less is no deadline at all. One that no timer has would be over at once. */
  #deadlineOf(timeoutMs: number = this.#defaultTimeoutMs ?? 0): number | undefined {
    return timeoutMs <= 0 ? undefined : Math.min(timeoutMs, timerMsMax);
  }

  #interception(signal: AbortSignal | undefined, timeoutMs: number | undefined): Interception {
    const interceptors = this.#interceptors;
    return { interceptors, ...(signal && { signal }), ...(timeoutMs !== undefined && { timeoutMs }) };
  }

  /** What interceptors see of a request besides its messages. */
  #request({ desc, rule }: RestMethod, header: HeadersInit | undefined, contextValues: ContextValues | undefined) {
    return {
      service: desc.parent,
      requestMethod: rule?.httpMethod ?? "POST",
      url: this.#calls.settings.baseUrl + (rule?.pattern.pathTemplate ?? ""),
      header: new Headers(header),
      contextValues: contextValues ?? createContextValues(),
    };
  }
}

type HeadersInit = ConstructorParameters<typeof Headers>[0];
type Interception = Pick<Parameters<typeof runUnaryCall>[0], "interceptors" | "signal" | "timeoutMs">;

/** Returns the URL without a slash at its end, as URLs are written once they are parsed. */
function readBaseUrl(text: string): string {
  const url = new URL(text, pageLocation().href);
  // An empty query is not in `search`, but paths behind its question mark would be none.
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
