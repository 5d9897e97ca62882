import { createMutableRegistry, type DescMethod, type DescService, type Registry } from "@bufbuild/protobuf";
import type { ConnectRouter, ConnectRouterOptions } from "@connectrpc/connect";
import { defaultReadMaxBytes, requireField } from "@protoport/gateway/exchange";
import {
  type OptionNames,
  refuseIgnoredOptions,
  refuseUnknownOptions,
  required,
  stringOr,
} from "@protoport/gateway/options";
import { HiddenParts, type PartlyVisible, type VisibilityOptions } from "@protoport/gateway/descriptors";
import { maxMessageBytes } from "@protoport/gateway/messages";
import type { ExternalHttpRule } from "@protoport/gateway/rest";
import { registerForwarder, brotli, gzip, zstd } from "@protoport/gateway/forward";
import { type CallSettings, Retries, type RetryPolicy, retryPolicyNames } from "../client/index.ts";
import {
  requireRange,
  type ServiceOwners,
  Upstream,
  type UpstreamOptions,
  upstreamOptionNames,
} from "../upstreams/index.ts";
import { readInTime, toDescriptorSource } from "./descriptor-sources.ts";
import { type DescriptorSource, type ServiceDescriptors, readDescriptors } from "./descriptors.ts";
import { ForwardedMethod, type ForwardTarget, UpstreamForwarder } from "./forward-call.ts";
import {
  compileForwardRules,
  type ForwardedFields,
  type ForwardRules,
  forwardRulesNames,
  requireEffect,
} from "./forward-rules.ts";
import type { UpstreamCallObserver } from "./observe-calls.ts";

/** A gRPC service behind a proxy, with its address, its descriptors, and options for forwarding. */
export interface ProxiedUpstreamOptions {
  /**
   * The address, as in {@link UpstreamOptions.addresses}, or options with TLS and more addresses. An upstream from
   * `createUpstream` is also accepted, can be shared, and is closed by the application.
   */
  readonly upstream: string | UpstreamOptions | Upstream;
  /**
   * A binary google.protobuf.FileDescriptorSet with all imported files, or its source. A file URL is read again when
   * the file changes. `"reflection"` queries the upstream (`grpc.reflection.v1` or `v1alpha`) at the start, when its
   * servers change, and every minute. A {@link DescriptorSource} is a custom source.
   */
  readonly descriptors: Uint8Array | URL | "reflection" | DescriptorSource;
  /** Header fields for reflection calls, such as a credential. */
  readonly reflectionHeader?: Readonly<Record<string, string>>;
  /** Milliseconds between two checks of {@link descriptors}. Default 250 ms for a file, a minute for reflection. */
  readonly reloadEveryMs?: number;
  /**
   * The services that the upstream serves, by full name. A name that ends in `*` is a prefix. Among several upstreams,
   * the most specific name applies, and each name must be unique. Required if several upstreams use
   * `"reflection"`. By default, an upstream serves all services that no other upstream names, except grpc.reflection,
   * grpc.health and grpc.channelz services.
   */
  readonly services?: readonly string[];
  /** HTTP rules that replace the RPC annotations. */
  readonly rules?: readonly ExternalHttpRule[];
  /** Rules for forwarding fields in the caller's header. */
  readonly requestHeader?: ForwardRules;
  /** Rules for forwarding fields in the upstream's header and trailer. */
  readonly responseHeader?: ForwardRules;
  /**
   * Maximum bytes in a response message, both compressed and uncompressed. A call with a larger message fails with
   * `ResourceExhausted`. Defaults to the smaller of the proxy's `readMaxBytes` and `writeMaxBytes`.
   */
  readonly readMaxBytes?: number;
  /**
   * Timeout in milliseconds for unary calls without a deadline, or 0 for no timeout. The default is
   * {@link maxTimeoutMs}. If neither option is set, the timeout is 15 s for REST, and other protocols have no timeout.
   */
  readonly timeoutMs?: number;
  /** Maximum timeout in milliseconds that callers can set. Streams without a deadline are not limited. */
  readonly maxTimeoutMs?: number;
  /**
   * Which failed calls are retried. `"transparent"`, the default, retries a call once if it was certainly not
   * processed. `"off"` retries no calls. A policy (gRFC A6) also retries calls that may have been processed, so that a
   * call may run twice. A request that is forwarded in parts is not retried after its first 96 KiB were sent.
   */
  readonly retry?: RetryPolicy | "transparent" | "off";
  /** Returns a method's settings that differ from its upstream's. Called once per method. */
  readonly methodSettings?: (method: DescMethod) => MethodSettings | undefined;
}

/** A method's settings, which override its {@link ProxiedUpstreamOptions}. */
export interface MethodSettings {
  /** Timeout in milliseconds for unary calls without a deadline. */
  readonly timeoutMs?: number | undefined;
  /** Maximum timeout in milliseconds that callers can set. */
  readonly maxTimeoutMs?: number | undefined;
  /** The retry option, as in {@link ProxiedUpstreamOptions}. Methods with the same policy object share one budget. */
  readonly retry?: ProxiedUpstreamOptions["retry"];
}

/** The member names in {@link ProxiedUpstreamOptions}. */
export const proxiedUpstreamOptionNames: OptionNames<ProxiedUpstreamOptions> = {
  upstream: required,
  descriptors: required,
  reflectionHeader: true,
  reloadEveryMs: true,
  services: true,
  rules: true,
  requestHeader: forwardRulesNames,
  responseHeader: forwardRulesNames,
  readMaxBytes: true,
  timeoutMs: true,
  maxTimeoutMs: true,
  retry: stringOr(retryPolicyNames),
  methodSettings: true,
};

const methodSettingsNames: OptionNames<MethodSettings> = {
  timeoutMs: true,
  maxTimeoutMs: true,
  retry: stringOr(retryPolicyNames),
};

/** Returns the options that a descriptor source does not use, each with the reason. */
function ignoredBy(descriptors: ProxiedUpstreamOptions["descriptors"]): Readonly<Record<string, string>> {
  if (descriptors === "reflection") return {};
  const reflectionHeader = 'descriptors are not "reflection"';
  if (descriptors instanceof URL) return { reflectionHeader };
  return { reflectionHeader, reloadEveryMs: "descriptors are neither a file nor reflection" };
}

/** Opens an upstream that the proxy closes. Throws as `createUpstream` does. */
function openUpstream(given: string | UpstreamOptions, path: string): Upstream {
  const options = typeof given === "string" ? { addresses: given } : given;
  refuseUnknownOptions(options, upstreamOptionNames, `${path}.upstream of createProxy`);
  return new Upstream(options);
}

/** Gateway options that also apply to upstream calls, and the call observer. */
interface UpstreamCallOptions extends Pick<
  ConnectRouterOptions,
  "binaryOptions" | "interceptors" | "readMaxBytes" | "writeMaxBytes"
> {
  readonly observe: UpstreamCallObserver | undefined;
  /** Selects the visible elements. Undefined if all elements are visible. */
  readonly visibility?: VisibilityOptions;
}

/** The connections to an upstream, and all settings that do not depend on its descriptors. */
export class ProxiedUpstream {
  readonly options: ProxiedUpstreamOptions;
  readonly connections: Upstream;
  readonly #ownsConnections: boolean;
  readonly #call: UpstreamCallOptions;
  readonly #settings: CallSettings;
  readonly #retries = new WeakMap<object, Retries>();
  readonly #requestFields: ForwardedFields;
  readonly #responseFields: ForwardedFields;
  readonly #at: number;
  readonly #owners: ServiceOwners;
  /** Other upstreams' services that the running read, the last read and the last `describe` found. */
  #listing = new Map<string, number>();
  #listed: ReadonlyMap<string, number> = new Map();
  #described: ReadonlyMap<string, number> = new Map();
  readonly #source: DescriptorSource;

  /**
   * @param at - the upstream's index in `owners`
   * @throws TypeError for an invalid address or rule, RangeError for a number out of range, Error if a certificate or
   * key cannot be parsed
   */
  constructor(options: ProxiedUpstreamOptions, call: UpstreamCallOptions, at: number, owners: ServiceOwners) {
    const { upstream } = options;
    refuseIgnoredOptions(options, ignoredBy(options.descriptors), `upstreams[${at}] of createProxy`);
    const { readMaxBytes = defaultReadMaxBytes, writeMaxBytes = maxMessageBytes } = call;
    if (options.readMaxBytes !== undefined) requireRange("readMaxBytes", options.readMaxBytes, 1, maxMessageBytes);
    requireTimeout("timeoutMs", options.timeoutMs, 0);
    requireTimeout("maxTimeoutMs", options.maxTimeoutMs, 1);
    // `new Headers()` is not used, because its errors contain the values, which may be secrets.
    for (const [name, value] of Object.entries(options.reflectionHeader ?? {})) requireField(name, value);
    this.options = options;
    this.#ownsConnections = !(upstream instanceof Upstream);
    this.connections = upstream instanceof Upstream ? upstream : openUpstream(upstream, `upstreams[${at}]`);
    const { scheme, authority } = this.connections;
    this.#at = at;
    this.#owners = owners;
    this.#source = toDescriptorSource(options.descriptors, {
      upstream: this.connections,
      isProxied: (name) => this.#isProxied(name, this.#listing),
      reloadEveryMs: options.reloadEveryMs,
      reflectionHeader: options.reflectionHeader ?? {},
    });
    this.#call = call;
    // The retries are created here, so that an invalid policy is reported immediately.
    this.#retriesOf(options.retry);
    requireEffect("request", options.requestHeader, `upstreams[${at}].requestHeader`);
    requireEffect("response", options.responseHeader, `upstreams[${at}].responseHeader`);
    this.#requestFields = compileForwardRules("request", options.requestHeader);
    this.#responseFields = compileForwardRules("response", options.responseHeader);
    this.#settings = {
      scheme,
      authority,
      sendCompression: undefined,
      acceptCompression: [gzip, brotli, zstd],
      // False, because the proxy would have to decompress responses, and compress them again for callers.
      offersCompression: false,
      compressMinBytes: 0,
      // Both limits apply by default, because the proxy reads the response and writes the response to the caller.
      readMaxBytes: options.readMaxBytes ?? Math.min(readMaxBytes, writeMaxBytes),
      // The maximum, because received requests were checked, and JSON messages are smaller in binary form.
      writeMaxBytes: maxMessageBytes,
      waitsForReady: false,
      receiver: "proxy",
    };
  }

  /** Closes the connections, unless the application opened them. */
  close(): Promise<void> {
    return this.#ownsConnections ? this.connections.close() : Promise.resolve();
  }

  /** Closes the connections as soon as no call uses them, unless the application opened the connections. */
  drain(timeoutMs: number): void {
    if (this.#ownsConnections) void this.connections.drain(timeoutMs);
  }

  /** Whether the upstream itself sends its descriptors. Otherwise, the operator configures the descriptors. */
  get isReflected(): boolean {
    return this.options.descriptors === "reflection";
  }

  /** Other upstreams' services that this upstream offers, with their owners' indexes. */
  get foreignServices(): ReadonlyMap<string, number> {
    return new Map([...this.#listed, ...this.#described]);
  }

  /** Reads the upstream's current binary FileDescriptorSet. Rejects with the source's error. */
  async readDescriptors(signal: AbortSignal): Promise<Uint8Array> {
    this.#listing = new Map();
    const set = await readInTime(this.#source, this.connections.name, signal);
    this.#listed = this.#listing;
    return set;
  }

  /** Calls a function when the descriptors may have changed. Returns a function that stops watching. */
  watchDescriptors(changed: () => void): () => void {
    let isWatching = true;
    const stop = this.#source.watch?.(() => {
      // A stopped source may still report a change that it found before the stop.
      if (isWatching) changed();
    });
    return () => {
      isWatching = false;
      stop?.();
    };
  }

  /** Returns the proxied services in a binary FileDescriptorSet. Rejects if the set is invalid. */
  async describe(descriptorSet: Uint8Array): Promise<ServiceDescriptors> {
    const foreign = new Map<string, number>();
    const isProxied = (name: string): boolean => this.#isProxied(name, foreign);
    const unread = this.#source.omitted?.() ?? new Map<string, string>();
    return await readDescriptors(descriptorSet, isProxied, this.#call.visibility, unread).finally(() => {
      this.#described = foreign;
    });
  }

  /**
   * Creates the service forwarders. The generator yields after each RPC.
   *
   * @param definitions - all types that may have hidden parts, with the services' types first
   * @returns a function that registers the RPCs
   */
  *prepare(
    services: readonly DescService[],
    definitions: readonly PartlyVisible[],
  ): Generator<void, (router: ConnectRouter) => void> {
    const { binaryOptions } = this.#call;
    const { recursionLimit } = binaryOptions ?? {};
    const hidden = HiddenParts.of(definitions, recursionLimit);
    const registrations: ((router: ConnectRouter) => void)[] = [];
    for (const method of services.flatMap(({ methods }) => methods)) {
      const isRestricted = hidden?.mayBeIn([method.input, method.output]) === true;
      const forwarder = this.#forwarderOf(method, binaryOptions, { hidden, isRestricted });
      const options = isRestricted
        ? { binaryOptions: recursionLimit === undefined ? {} : { recursionLimit } }
        : undefined;
      registrations.push((router) => registerForwarder(router, method, forwarder, options));
      yield;
    }
    return (router) => {
      for (const register of registrations) register(router);
    };
  }

  /** Returns whether a service is proxied. Adds another upstream's service to `foreign`. */
  #isProxied(name: string, foreign: Map<string, number>): boolean {
    const owner = this.#owners.ownerOfOffered(this.#at, name);
    if (owner !== undefined && owner !== this.#at && foreign.size < maxForeign) foreign.set(name, owner);
    return owner === this.#at;
  }

  /** Returns the retries for a policy. All methods with the same policy object share one budget. */
  #retriesOf(retry: ProxiedUpstreamOptions["retry"] = "transparent"): Retries {
    if (typeof retry === "string") return new Retries(retry);
    const retries = this.#retries.get(retry) ?? new Retries(retry);
    this.#retries.set(retry, retries);
    return retries;
  }

  #forwarderOf(
    method: DescMethod,
    binaryOptions: UpstreamCallOptions["binaryOptions"],
    hiding: Pick<ForwardTarget, "hidden" | "isRestricted">,
  ): UpstreamForwarder {
    const own = this.options.methodSettings?.(method) ?? {};
    refuseUnknownOptions(own, methodSettingsNames, "methodSettings of createProxy");
    requireTimeout("timeoutMs of methodSettings", own.timeoutMs, 0);
    requireTimeout("maxTimeoutMs of methodSettings", own.maxTimeoutMs, 1);
    const { observe } = this.#call;
    return new UpstreamForwarder({
      upstream: this.connections,
      method: new ForwardedMethod(method, this.#settings),
      binaryOptions,
      ...hiding,
      retries: this.#retriesOf(own.retry ?? this.options.retry),
      requestFields: this.#requestFields,
      responseFields: this.#responseFields,
      timeoutMs: own.timeoutMs ?? this.options.timeoutMs,
      maxTimeoutMs: own.maxTimeoutMs ?? this.options.maxTimeoutMs,
      observe,
    });
  }
}

/**
 * Returns a registry with all types, for Any messages and error details in JSON. If upstreams have different types with
 * the same name, the first upstream's type is used. The generator yields after each type.
 */
export function* typesOf(descriptors: readonly ServiceDescriptors[]): Generator<void, Registry> {
  const [only] = descriptors;
  if (only !== undefined && descriptors.length === 1) return only.types;
  const all = createMutableRegistry();
  for (const { types } of descriptors.toReversed()) {
    for (const type of types) {
      all.add(type);
      yield;
    }
  }
  return all;
}

/** Maximum services from other upstreams that are reported for one upstream. A server may list millions of services. */
const maxForeign = 1_000;

function requireTimeout(name: string, timeoutMs: number | undefined, least: 0 | 1): void {
  if (timeoutMs !== undefined) requireRange(name, timeoutMs, least, Number.MAX_SAFE_INTEGER);
}
