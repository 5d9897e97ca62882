import {
  createRegistry,
  type DescMethod,
  type DescMethodBiDiStreaming,
  type DescMethodClientStreaming,
  type DescMethodServerStreaming,
  type DescMethodUnary,
  type DescService,
  type Registry,
} from "@bufbuild/protobuf";
import type { ConnectRouter, ConnectRouterOptions } from "@connectrpc/connect";
import { defaultReadMaxBytes } from "@plantstore/gateway/exchange";
import { type CallSettings, ClientMethod, Retries, type RetryPolicy, retryPolicyNames } from "../client/index.ts";
import { type OptionNames, required } from "@plantstore/gateway/options";
import { messageBytesMax, oneMessage, type UnaryRpc } from "@plantstore/gateway/internal/protocols";
import type { OutsideHttpRule } from "@plantstore/gateway/rest";
import { createUpstream, requireRange, type Upstream, type UpstreamTls } from "../upstreams/index.ts";
import { brotli, gzip, zstd } from "@plantstore/gateway/internal/compression";
import { toDescriptorSource } from "./descriptor-sources.ts";
import { type DescriptorSource, type Described, readDescriptors } from "./descriptors.ts";
import { forwardStream, type ForwardTarget, forwardUnary, onlyAnswer, promiseUnary } from "./forward-call.ts";
import { compileForwardRules, type ForwardedFields, type ForwardRules, forwardRulesNames } from "./forward-rules.ts";
import { createAnswerDecoder, createUpstreamCodec } from "./opaque-message.ts";

/** A gRPC service that a proxy stands before: where it is, what it offers, and how calls are passed on to it. */
export interface ProxiedUpstream {
  /**
   * Where it is: `http://host:port`, `https://host:port`, `unix:/path`, or `dns:host:port`, each of whose addresses is a
   * server. Or an upstream of `createUpstream`, which has more options, may be shared, and is closed by the program.
   */
  readonly upstream: string | Upstream;
  /** Certificates to trust (`ca`), our own (`cert` and `key`), the name of the server (`servername`). For an address. */
  readonly tls?: UpstreamTls;
  /**
   * A binary google.protobuf.FileDescriptorSet with all that its files import, or where to get one: the URL of a file,
   * which is read again when it changes; `"reflection"`, which asks the upstream (`grpc.reflection.v1` or `v1alpha`) at
   * the start, when its servers are others, and every minute; or a source of your own.
   */
  readonly descriptors: Uint8Array | URL | "reflection" | DescriptorSource;
  /** Header fields of the calls that `"reflection"` makes, such as a credential. */
  readonly reflectionHeader?: Readonly<Record<string, string>>;
  /** Milliseconds between two looks at {@link descriptors}. Default 250 ms for a file, a minute for reflection. */
  readonly reloadEveryMs?: number;
  /** Selects services by their full names. Default: all but those of grpc.reflection, grpc.health and grpc.channelz. */
  readonly services?: (name: string) => boolean;
  /** Rules that replace the annotations of RPCs, which often nobody here can change. */
  readonly rules?: readonly OutsideHttpRule[];
  /** Which fields of the caller's header are passed on. */
  readonly metadata?: ForwardRules;
  /** Which fields of the upstream's header and trailer are passed on. */
  readonly answerMetadata?: ForwardRules;
  /** Milliseconds for a unary call whose caller sets no deadline. Default: {@link timeoutMaxMs}, or else none. */
  readonly timeoutMs?: number;
  /** Cuts deadlines of callers to so many milliseconds. Streams without a deadline go on without one. */
  readonly timeoutMaxMs?: number;
  /**
   * Which calls are sent again: with `"transparent"`, the default, once those that were certainly not processed; with
   * `"off"` none; with a policy also those that have failed and may be processed twice (gRFC A6).
   */
  readonly retry?: RetryPolicy | "transparent" | "off";
}

/** The names of {@link ProxiedUpstream}. */
export const proxiedUpstreamNames: OptionNames<ProxiedUpstream> = {
  upstream: required,
  tls: true,
  descriptors: required,
  reflectionHeader: true,
  reloadEveryMs: true,
  services: true,
  rules: true,
  metadata: forwardRulesNames,
  answerMetadata: forwardRulesNames,
  timeoutMs: true,
  timeoutMaxMs: true,
  retry: retryPolicyNames,
};

/** Options of the gateway that the calls to upstreams share. */
export type CallOptions = Pick<
  ConnectRouterOptions,
  "binaryOptions" | "interceptors" | "readMaxBytes" | "writeMaxBytes"
>;

/** The connections to an upstream, and what does not depend on its descriptors. */
export class OpenUpstream {
  readonly options: ProxiedUpstream;
  readonly connections: Upstream;
  readonly #isOwn: boolean;
  readonly #call: CallOptions;
  readonly #settings: CallSettings;
  readonly #retries: Retries;
  readonly #requestFields: ForwardedFields;
  readonly #answerFields: ForwardedFields;
  readonly #isProxied: (name: string) => boolean;
  readonly #source: DescriptorSource;

  /**
   * @throws TypeError for an address or a rule that is none, RangeError for a number out of range, Error for certificates
   * or keys that cannot be read
   */
  constructor(options: ProxiedUpstream, call: CallOptions) {
    const { upstream, tls } = options;
    const { readMaxBytes = defaultReadMaxBytes, writeMaxBytes = messageBytesMax } = call;
    requireTimeout("timeoutMs", options.timeoutMs);
    requireTimeout("timeoutMaxMs", options.timeoutMaxMs);
    this.options = options;
    this.#isOwn = typeof upstream === "string";
    this.connections =
      typeof upstream === "string" ? createUpstream({ addresses: upstream, ...(tls && { tls }) }) : upstream;
    const { scheme, authority } = this.connections;
    this.#isProxied = options.services ?? isForCallers;
    this.#source = toDescriptorSource(options.descriptors, {
      upstream: this.connections,
      isProxied: this.#isProxied,
      reloadEveryMs: options.reloadEveryMs,
      reflectionHeader: options.reflectionHeader ?? {},
    });
    this.#call = call;
    this.#retries = new Retries(options.retry ?? "transparent");
    this.#requestFields = compileForwardRules("request", options.metadata);
    this.#answerFields = compileForwardRules("answer", options.answerMetadata);
    this.#settings = {
      scheme,
      authority,
      sendCompression: undefined,
      acceptCompression: [gzip, brotli, zstd],
      // It would be undone here, and done again for those callers that want it.
      offersCompression: false,
      compressMinBytes: 0,
      // What is read of an upstream is written to a caller.
      readMaxBytes: Math.min(readMaxBytes, writeMaxBytes),
      // What callers may send was checked when it came; JSON is longer than what it becomes.
      writeMaxBytes: messageBytesMax,
      waitsForReady: false,
    };
  }

  /** Closes the connections, unless the program has opened them. */
  close(): Promise<void> {
    return this.#isOwn ? this.connections.close() : Promise.resolve();
  }

  /** Returns the binary FileDescriptorSet of the upstream, as it is by now. Rejects with what its source rejects with. */
  readDescriptors(signal: AbortSignal): Promise<Uint8Array> {
    return this.#source.read(signal);
  }

  /** Calls a function when there may be other descriptors. Returns a function that stops it. */
  watchDescriptors(changed: () => void): () => void {
    return this.#source.watch?.(changed) ?? (() => undefined);
  }

  /** Returns the services to pass on, by a binary FileDescriptorSet. Throws as {@link readDescriptors} does. */
  describe(descriptorSet: Uint8Array): Described {
    const described = readDescriptors(descriptorSet, this.#isProxied);
    const names = new Set(described.services.map(({ typeName }) => typeName));
    // The last reading may be another one than that of these descriptors, which stay if it was refused.
    const unread = [...(this.#source.omitted?.() ?? [])].filter(([name]) => !names.has(name));
    return { ...described, omitted: new Map([...unread, ...described.omitted]) };
  }

  /** Registers handlers that forward all calls of services. @returns what runs each unary RPC without interceptors */
  register(router: ConnectRouter, services: readonly DescService[]): ReadonlyMap<DescMethod, UnaryRpc["run"]> {
    const runs = new Map<DescMethod, UnaryRpc["run"]>();
    for (const method of services.flatMap(({ methods }) => methods)) {
      const target = this.#target(method);
      registerMethod(router, method, target);
      if (method.methodKind === "unary") {
        runs.set(method, (call, reply) => forwardUnary(target, call.message, call, reply));
      }
    }
    return runs;
  }

  #target(method: DescMethod): ForwardTarget {
    const { timeoutMs, timeoutMaxMs } = this.options;
    const { binaryOptions, interceptors = [] } = this.#call;
    const codec = createUpstreamCodec(method, binaryOptions, interceptors.length === 0 ? "shared" : "own");
    return {
      upstream: this.connections,
      method: new ClientMethod(method, this.#settings, codec),
      decode: createAnswerDecoder(method, binaryOptions),
      retries: this.#retries,
      requestFields: this.#requestFields,
      answerFields: this.#answerFields,
      timeoutMs,
      timeoutMaxMs,
    };
  }
}

/** Returns all types that are described, for JSON: those that an Any or the details of an error may hold. */
export function typesOf(described: readonly Described[]): Registry {
  return createRegistry(...described.map(({ types }) => types));
}

/** Every RPC, by types that its kind tells apart. */
type AnyMethod = DescMethodUnary | DescMethodServerStreaming | DescMethodClientStreaming | DescMethodBiDiStreaming;

function registerMethod(router: ConnectRouter, method: AnyMethod, target: ForwardTarget): void {
  switch (method.methodKind) {
    case "unary":
      router.rpc(method, (message, context) => promiseUnary(target, message, context));
      break;
    case "server_streaming":
      router.rpc(method, (message, context) => forwardStream(target, oneMessage(message), context));
      break;
    case "client_streaming":
      router.rpc(method, (messages, context) => onlyAnswer(forwardStream(target, messages, context)));
      break;
    case "bidi_streaming":
      router.rpc(method, (messages, context) => forwardStream(target, messages, context));
  }
}

function requireTimeout(name: string, timeoutMs: number | undefined): void {
  if (timeoutMs !== undefined) requireRange(name, timeoutMs, 1, Number.MAX_SAFE_INTEGER);
}

/** What every server has for its own operation. */
const isForCallers = (name: string): boolean => !/^grpc\.(?:reflection|health|channelz)\./.test(name);
