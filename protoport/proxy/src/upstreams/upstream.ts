import { Code, ConnectError } from "@connectrpc/connect";
import { BacklogBudget } from "@protoport/gateway/http2-client";
import { refuseUnknownOptions } from "@protoport/gateway/options";
import { AddressResolver } from "./address-resolver.ts";
import { CallQueue, type PendingCall, type RefusalReason } from "./call-queue.ts";
import { prepareTls } from "./open-socket.ts";
import { pickServer, type ServerEvents, UpstreamServer } from "./upstream-server.ts";
import { nameAddress, readUpstreamAddress, type UpstreamAddress } from "./upstream-address.ts";
import type { ServerSettings, UpstreamConnection } from "./upstream-connection.ts";
import { toClientLimits, type UpstreamLimits } from "./upstream-limits.ts";
import { readUpstreamOptions, upstreamOptionNames, type UpstreamOptions } from "./upstream-options.ts";

/** An {@link Upstream}'s current load. */
export interface UpstreamLoad {
  /** How many servers are known. */
  readonly servers: number;
  /** How many connections are open, including draining connections. */
  readonly connections: number;
  /** How many calls are in flight. */
  readonly calls: number;
  /** How many calls are queued for a connection or a stream. */
  readonly waitingCalls: number;
  /** How many bytes are queued to be sent. */
  readonly queuedBytes: number;
  /** How many calls were refused although servers can be reached, by reason, since the upstream was created. */
  readonly refusals: Readonly<Record<RefusalReason, number>>;
}

/** Milliseconds between two checks for queued calls. 100 ms is a tenth of the shortest backoff. */
const waitersCheckIntervalMs = 100;

/** Maximum concurrent attempts to connect for queued calls. If the first fails, the second is already running. */
const maxConcurrentConnects = 2;

/**
 * Equivalent servers and the connections to them, which are opened when calls need them. A call goes to the less loaded
 * of two random servers. Servers that cannot be reached are retried after gRPC's backoff. If no server can be reached,
 * calls fail immediately unless they wait for ready. Transports that share an upstream share its connections.
 */
export class Upstream implements AsyncDisposable {
  /** The scheme for all servers. */
  readonly scheme: "http" | "https";
  /** The `:authority` of requests. */
  readonly authority: string;
  /** The first address in messages, such as `orders:50051` or `unix:/run/orders.sock`. */
  readonly name: string;
  readonly #limits: UpstreamLimits;
  readonly #settings: ServerSettings;
  readonly #budget = new BacklogBudget(Number.POSITIVE_INFINITY);
  readonly #addresses: AddressResolver;
  /** Servers by address. A server whose address was removed stays until a lookup finds it without connections. */
  readonly #byAddress = new Map<string, UpstreamServer>();
  /** The servers that get calls. */
  #servers: readonly UpstreamServer[] = [];
  readonly #queue: CallQueue;
  readonly #watchers = new Set<() => void>();
  /** The timer for queued calls, which polls because no event signals the end of a backoff, a pause or a timeout. */
  #check: NodeJS.Timeout | undefined;
  #closing: Promise<void> | undefined;
  /** Time at which calls are aborted and refused, in `performance.now()` milliseconds. */
  #closesAtMs = Number.POSITIVE_INFINITY;
  #abortTimer: NodeJS.Timeout | undefined;
  #resolveClosing: (() => void) | undefined;
  readonly #events: ServerEvents = {
    onStreamAvailable: (connection) => this.#startQueued(connection),
    onChange: () => this.#connect(),
    onConnected: () => this.#notifyWatchers(),
    onLost: () => this.#onLost(),
    onClosed: () => this.#resolveIfClosed(),
  };

  /** See {@link createUpstream}. */
  constructor(options: UpstreamOptions) {
    const settings = readUpstreamOptions(options);
    const { tls, limits, keepaliveMs } = settings;
    const [first, ...others] = readAddresses(settings.addresses, tls !== undefined);
    this.scheme = first.scheme;
    this.authority = first.authority;
    this.name = nameAddress(first);
    this.#limits = limits;
    this.#queue = new CallQueue(limits, this.name);
    this.#settings = {
      ...settings,
      tls: first.scheme === "https" ? prepareTls(tls) : undefined,
      http2Limits: toClientLimits(limits, keepaliveMs, limits.idleTimeoutMs),
      additionalHttp2Limits: toClientLimits(
        limits,
        keepaliveMs,
        Math.min(limits.idleTimeoutMs, limits.additionalIdleTimeoutMs),
      ),
      budget: this.#budget,
    };
    this.#addresses = new AddressResolver([first, ...others], settings, () => this.#updateServers());
    this.#updateServers();
  }

  /**
   * Whether a call would be attempted now. `false` if all known servers are unhealthy or in backoff, or if the upstream
   * is draining or closed.
   */
  get ready(): boolean {
    if (this.#closing !== undefined) return false;
    if (this.#servers.length === 0) return !this.#addresses.isTooEarly;
    return this.#servers.some(({ isServing, isPending, mayConnect }) => isServing || isPending || mayConnect);
  }

  /** Whether the upstream was closed and accepts no more calls, including retries. */
  get isClosed(): boolean {
    return this.#closing !== undefined && performance.now() >= this.#closesAtMs;
  }

  /** Maximum bytes in a response's header or trailer. */
  get maxHeaderBytes(): number {
    return this.#limits.headerBytes;
  }

  /** The current load. */
  get load(): UpstreamLoad {
    let connections = 0;
    let calls = 0;
    for (const server of this.#byAddress.values()) {
      connections += server.connections;
      calls += server.calls;
    }
    const { size: waitingCalls, refusals } = this.#queue;
    const { bytes: queuedBytes } = this.#budget;
    return { servers: this.#servers.length, connections, calls, waitingCalls, queuedBytes, refusals };
  }

  /** Assigns a stream to a call as soon as a stream is free. Used by transports. */
  call(call: PendingCall): void {
    if (this.isClosed) return call.refuse(upstreamClosedError());
    if (this.#closing !== undefined) this.#startAbortTimer();
    const { queuedBytes } = this.#limits;
    if (this.#budget.bytes > queuedBytes) {
      return this.#queue.refuse(call, "unsent_bytes", `more than ${queuedBytes} bytes are queued`);
    }
    const connection = this.#findConnection();
    this.#addresses.refresh();
    if (connection !== undefined) return call.begin(connection.http2);
    this.#queue.add(call);
    this.#connect();
  }

  /** Removes a queued call. Used by transports. */
  dequeue(call: PendingCall): void {
    this.#queue.remove(call);
    this.#stopCheckIfEmpty();
  }

  /**
   * Calls a function when a server was connected, or was lost while other servers remain. Proxies then read the
   * descriptors again, which may have changed. Returns a function that stops watching.
   */
  watchServers(onChange: () => void): () => void {
    this.#watchers.add(onChange);
    return () => void this.#watchers.delete(onChange);
  }

  /**
   * Accepts no more calls and fails queued calls. Resolves when the calls in flight have finished. The remaining calls
   * are aborted after {@link UpstreamLimits.closeTimeoutMs}.
   */
  close(): Promise<void> {
    const closed = this.drain(this.#limits.closeTimeoutMs);
    this.#closesAtMs = 0;
    this.#failWaiting(upstreamClosedError());
    return closed;
  }

  /**
   * Closes each connection when its calls have finished. Resolves when no call is queued or in flight. Calls that still
   * arrive, such as retries or calls whose request was incomplete, are served too. All calls are aborted after
   * `timeoutMs`.
   */
  drain(timeoutMs: number): Promise<void> {
    if (this.#closing !== undefined) return this.#closing;
    const { promise, resolve } = Promise.withResolvers<void>();
    this.#closing = promise;
    this.#closesAtMs = performance.now() + timeoutMs;
    this.#startAbortTimer();
    this.#resolveClosing = () => {
      clearTimeout(this.#abortTimer);
      this.#abortTimer = undefined;
      resolve();
    };
    this.#drainIfUnqueued();
    return promise;
  }

  /** Starts the drain timeout. The timer keeps the process running, because sockets without calls do not. */
  #startAbortTimer(): void {
    const remainingMs = Math.max(0, this.#closesAtMs - performance.now());
    this.#abortTimer ??= setTimeout(() => {
      this.#closesAtMs = 0;
      this.#failWaiting(upstreamClosedError());
      for (const server of this.#byAddress.values()) server.destroy();
    }, remainingMs);
  }

  /** Closes a draining upstream's connections once no call is queued. */
  #drainIfUnqueued(): void {
    if (this.#resolveClosing === undefined || this.#queue.size > 0) return;
    for (const server of this.#byAddress.values()) server.drain();
    this.#resolveIfClosed();
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.close();
  }

  #findConnection(): UpstreamConnection | undefined {
    const picked = pickServer(this.#servers);
    const connection = picked?.findConnection();
    if (connection !== undefined) return connection;
    // Connects to the picked server, so that later calls are distributed over all servers.
    if (picked?.isServing === false) picked.connect();
    return this.#findAnyConnection();
  }

  #findAnyConnection(): UpstreamConnection | undefined {
    let fewestCalls = Number.POSITIVE_INFINITY;
    let leastLoaded: UpstreamConnection | undefined;
    for (const server of this.#servers) {
      const connection = server.calls < fewestCalls ? server.findConnection() : undefined;
      if (connection === undefined) continue;
      fewestCalls = server.calls;
      leastLoaded = connection;
    }
    return leastLoaded;
  }

  /** Updates the servers to the current addresses. */
  #updateServers(): void {
    const { addresses } = this.#addresses;
    for (const [key, address] of addresses) {
      if (!this.#byAddress.has(key))
        this.#byAddress.set(key, new UpstreamServer(address, this.#settings, this.#events));
    }
    // The new servers are set first, because draining the removed servers assigns waiting calls to other servers.
    this.#servers = [...this.#byAddress].filter(([key]) => addresses.has(key)).map(([, server]) => server);
    for (const [key, server] of this.#byAddress) {
      if (addresses.has(key)) continue;
      server.drain();
      if (server.connections === 0) this.#byAddress.delete(key);
    }
    this.#connect();
  }

  /** Connects to servers for queued calls. Fails the calls if no connection or lookup is pending. */
  #connect(): void {
    if (this.#queue.size === 0) return;
    // The timer keeps the process running, because lookups and sockets without calls do not.
    this.#check ??= setInterval(() => this.#checkWaiting(), waitersCheckIntervalMs);
    const count = this.#servers.length;
    // The first server is random, so that clients do not all connect to the same server first.
    const start = Math.trunc(Math.random() * count);
    const rotatedServers = [...this.#servers.slice(start), ...this.#servers.slice(0, start)];
    const serving = rotatedServers.filter(({ isServing }) => isServing);
    const unusedServers = rotatedServers.filter(({ isServing }) => !isServing);
    let pending = unusedServers.filter(({ isPending }) => isPending).length;
    for (const server of unusedServers) {
      if (pending >= maxConcurrentConnects) break;
      if (!server.mayConnect) continue;
      server.connect();
      pending++;
    }
    let unassigned = this.#queue.size;
    for (const server of serving) if (unassigned > 0) unassigned -= server.grow(unassigned);
    if (pending > 0 || serving.length > 0 || this.#addresses.isResolving) return;
    this.#failWaiting(this.#problem, ({ waitsForReady }) => !waitsForReady);
  }

  #checkWaiting(): void {
    this.#addresses.refresh();
    this.#connect();
    this.#queue.refuseTimedOut(this.#servers.some(({ isServing }) => isServing));
    this.#stopCheckIfEmpty();
  }

  /** The error for which no call can be sent. */
  get #problem(): ConnectError {
    const problem = this.#servers.find((server) => server.problem !== undefined)?.problem ?? this.#addresses.problem;
    return problem ?? new ConnectError("no server is healthy", Code.Unavailable);
  }

  #startQueued(connection: UpstreamConnection): void {
    while (connection.availableStreams > 0) {
      const call = this.#queue.shift();
      if (call === undefined) return this.#stopCheckIfEmpty();
      call.begin(connection.http2);
    }
    this.#connect();
    this.#stopCheckIfEmpty();
  }

  /** Stops the periodic check if no call is queued. */
  #stopCheckIfEmpty(): void {
    if (this.#queue.size > 0 || this.#check === undefined) return;
    clearInterval(this.#check);
    this.#check = undefined;
    this.#queue.refuseTimedOut(false);
    this.#drainIfUnqueued();
  }

  #onLost(): void {
    if (this.#closing !== undefined) return;
    if (this.#servers.some(({ isServing }) => isServing)) this.#notifyWatchers();
    this.#addresses.refreshSoon();
  }

  #notifyWatchers(): void {
    for (const onChange of this.#watchers) onChange();
  }

  #resolveIfClosed(): void {
    const { connections, waitingCalls } = this.load;
    if (this.#resolveClosing !== undefined && connections + waitingCalls === 0) this.#resolveClosing();
  }

  #failWaiting(
    { rawMessage, code, cause }: ConnectError,
    isSelected: (call: PendingCall) => boolean = () => true,
  ): void {
    const waiting = this.#queue.removeAll(isSelected);
    this.#stopCheckIfEmpty();
    // Each call gets a separate error, because code that catches an error may change its metadata.
    for (const call of waiting) call.refuse(new ConnectError(rawMessage, code, undefined, undefined, cause));
  }
}

/**
 * Creates an upstream, whose servers get the calls from transports. The upstream connects at the first call.
 *
 * `await using`, or `close()`, closes the upstream. Queued calls then fail with `Unavailable`, and calls in flight may
 * finish.
 *
 * @throws TypeError for an unknown option, an invalid address, or mixed schemes; RangeError for a number out of range;
 * Error if a certificate or key cannot be parsed
 */
export function createUpstream(options: UpstreamOptions): Upstream {
  refuseUnknownOptions(options, upstreamOptionNames, "createUpstream");
  return new Upstream(options);
}

function readAddresses(
  texts: string | readonly string[],
  secure: boolean,
): [first: UpstreamAddress, ...others: UpstreamAddress[]] {
  const [first, ...others] = (typeof texts === "string" ? [texts] : texts).map((text) =>
    readUpstreamAddress(text, secure),
  );
  if (first === undefined) throw new TypeError("addresses must not be empty");
  if (others.some(({ scheme }) => scheme !== first.scheme)) {
    throw new TypeError("either all or none of the addresses of an upstream must use TLS");
  }
  return [first, ...others];
}

function upstreamClosedError(): ConnectError {
  return new ConnectError("the transport is closed", Code.Unavailable);
}
