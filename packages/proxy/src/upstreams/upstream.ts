import { Code, ConnectError } from "@connectrpc/connect";
import { BacklogBudget } from "@plantstore/gateway/exchange";
import { refuseUnknownOptions } from "@plantstore/gateway/options";
import { AddressBook } from "./address-book.ts";
import { type Caller, CallQueue, type RefusalReason } from "./call-queue.ts";
import { prepareTls } from "./open-socket.ts";
import { pickServer } from "./pick-server.ts";
import { readUpstreamAddress, type UpstreamAddress } from "./upstream-address.ts";
import type { ServerSettings, UpstreamConnection } from "./upstream-connection.ts";
import { toClientLimits, type UpstreamLimits } from "./upstream-limits.ts";
import { readUpstreamOptions, upstreamOptionNames, type UpstreamOptions } from "./upstream-options.ts";
import { type ServerEvents, UpstreamServer } from "./upstream-server.ts";

/** What an {@link Upstream} is doing. */
export interface UpstreamLoad {
  /** Servers that are known. */
  readonly servers: number;
  /** Connections that are open, those that are about to end among them. */
  readonly connections: number;
  /** Calls that were sent and are not answered yet. */
  readonly calls: number;
  /** Calls that wait for a connection or a stream. */
  readonly waitingCalls: number;
  /** Bytes that wait to be sent. */
  readonly queuedBytes: number;
  /** Calls that were refused although servers can be reached, since the upstream was created, by reason. */
  readonly refusals: Readonly<Record<RefusalReason, number>>;
}

/** Milliseconds between two checks of what calls wait for. 100 ms: a tenth of the shortest back-off. */
const waitersCheckIntervalMs = 100;

/** Servers that are connected to concurrently because calls wait. 2: if the first is of no use, another is on its way. */
const attemptsAtOnce = 2;

/**
 * Servers that all answer the same calls, and the connections to them. A server is connected to when a call needs it, and
 * a call goes to the less loaded of two. Servers that cannot be reached are tried again by gRPC's rule; while there is no
 * other, calls fail at once, but for those that wait for ready. Transports that share an upstream share its connections.
 */
export class Upstream implements AsyncDisposable {
  /** Of all servers. */
  readonly scheme: "http" | "https";
  /** The `:authority` of requests. */
  readonly authority: string;
  readonly #limits: UpstreamLimits;
  readonly #settings: ServerSettings;
  readonly #budget = new BacklogBudget(Number.POSITIVE_INFINITY);
  readonly #book: AddressBook;
  /** Servers by address. One whose address is gone stays until a look-up finds it without connections. */
  readonly #known = new Map<string, UpstreamServer>();
  /** Those that calls are given to. */
  #servers: readonly UpstreamServer[] = [];
  readonly #queue: CallQueue;
  readonly #watchers = new Set<() => void>();
  /** Runs while calls wait: those that no event wakes, as a back-off, a gap between two look-ups or their time is over. */
  #check: NodeJS.Timeout | undefined;
  #closing: Promise<void> | undefined;
  #closed: (() => void) | undefined;
  readonly #events: ServerEvents = {
    onRoom: (connection) => this.#serve(connection),
    onChange: () => this.#connect(),
    onConnected: () => this.#tellWatchers(),
    onLost: () => this.#lost(),
    onClosed: () => this.#tellClosed(),
  };

  /** See {@link createUpstream}. */
  constructor(options: UpstreamOptions) {
    const settings = readUpstreamOptions(options);
    const { tls, limits, connections, keepaliveMs, healthService, maxConnectionAgeMs } = settings;
    const [first, ...others] = readAddresses(settings.addresses, tls !== undefined);
    this.scheme = first.scheme;
    this.authority = first.authority;
    this.#limits = limits;
    this.#queue = new CallQueue(limits, this.authority);
    this.#settings = {
      tls: first.scheme === "https" ? prepareTls(tls) : undefined,
      connections,
      keepaliveMs,
      healthService,
      maxConnectionAgeMs,
      limits,
      http2Limits: toClientLimits(limits, keepaliveMs, limits.idleTimeoutMs),
      surplusHttp2Limits: toClientLimits(
        limits,
        keepaliveMs,
        Math.min(limits.idleTimeoutMs, limits.surplusIdleTimeoutMs),
      ),
      budget: this.#budget,
    };
    this.#book = new AddressBook([first, ...others], settings, () => this.#readdress());
    this.#readdress();
  }

  /**
   * Whether a call would be tried now: `false` if every server that is known is left alone because it could not be
   * reached, is not healthy, or if the upstream is closed.
   */
  get ready(): boolean {
    if (this.#closing !== undefined) return false;
    if (this.#servers.length === 0) return !this.#book.waits;
    return this.#servers.some(({ isServing, isPending, mayConnect }) => isServing || isPending || mayConnect);
  }

  /** Whether it takes no more calls, and will not. */
  get isClosed(): boolean {
    return this.#closing !== undefined;
  }

  /** What it is doing now. */
  get load(): UpstreamLoad {
    let connections = 0;
    let calls = 0;
    for (const server of this.#known.values()) {
      connections += server.connections;
      calls += server.calls;
    }
    const { size: waitingCalls, refusals } = this.#queue;
    const { bytes: queuedBytes } = this.#budget;
    return { servers: this.#servers.length, connections, calls, waitingCalls, queuedBytes, refusals };
  }

  /** Gives a call a stream: at once, or when there is one. For transports. */
  call(caller: Caller): void {
    if (this.#closing !== undefined) return caller.refuse(closed());
    const { queuedBytes } = this.#limits;
    if (this.#budget.bytes > queuedBytes) {
      return this.#queue.refuse(caller, "unsent_bytes", `more than ${queuedBytes} bytes wait to be sent`);
    }
    const connection = this.#findRoom();
    this.#book.refresh();
    if (connection !== undefined) return caller.begin(connection.carrier);
    this.#queue.add(caller);
    this.#connect();
  }

  /** Forgets a call that waits. For transports. */
  leave(caller: Caller): void {
    this.#queue.remove(caller);
    this.#restIfDone();
  }

  /**
   * Calls a function when calls may go to other servers than before: one was connected to, or was lost and others are
   * there. For proxies, whose descriptors may be others then. Returns a function that stops it.
   */
  watchServers(changed: () => void): () => void {
    this.#watchers.add(changed);
    return () => void this.#watchers.delete(changed);
  }

  /** The same as {@link drain}, for as long as {@link UpstreamLimits.closeTimeoutMs}. */
  close(): Promise<void> {
    return this.drain(this.#limits.closeTimeoutMs);
  }

  /**
   * Takes no more calls, fails those that wait for a stream, and resolves when the others have ended, or were ended
   * after this many milliseconds.
   */
  drain(timeoutMs: number): Promise<void> {
    if (this.#closing !== undefined) return this.#closing;
    const { promise, resolve } = Promise.withResolvers<void>();
    // From here on, so that no policy keeps a call that is failed below for later.
    this.#closing = promise;
    const servers = [...this.#known.values()];
    // Keeps the process alive, as the sockets do not: somebody may wait for the end.
    const timer = setTimeout(() => {
      for (const server of servers) server.destroy();
    }, timeoutMs);
    this.#closed = () => {
      clearTimeout(timer);
      resolve();
    };
    this.#failWaiting(closed());
    for (const server of servers) server.drain();
    this.#tellClosed();
    return promise;
  }

  /** The same as {@link close}. */
  [Symbol.asyncDispose](): Promise<void> {
    return this.close();
  }

  #findRoom(): UpstreamConnection | undefined {
    const picked = pickServer(this.#servers);
    const room = picked?.findRoom();
    if (room !== undefined) return room;
    // So that each server gets its share sooner or later.
    if (picked?.isServing === false) picked.connect();
    return this.#findAnyRoom();
  }

  #findAnyRoom(): UpstreamConnection | undefined {
    let least = Number.POSITIVE_INFINITY;
    let found: UpstreamConnection | undefined;
    for (const server of this.#servers) {
      const room = server.calls < least ? server.findRoom() : undefined;
      if (room === undefined) continue;
      least = server.calls;
      found = room;
    }
    return found;
  }

  /** Takes over the addresses that are known. */
  #readdress(): void {
    const { addresses } = this.#book;
    for (const [key, address] of addresses) {
      if (!this.#known.has(key)) this.#known.set(key, new UpstreamServer(address, this.#settings, this.#events));
    }
    // Before others are given up: the calls that wait for those look here for another.
    this.#servers = [...this.#known].filter(([key]) => addresses.has(key)).map(([, server]) => server);
    for (const [key, server] of this.#known) {
      if (addresses.has(key)) continue;
      server.drain();
      if (server.connections === 0) this.#known.delete(key);
    }
    this.#connect();
  }

  /** Connects to servers if calls wait, and fails these if there is nothing that they could wait for. */
  #connect(): void {
    if (this.#queue.size === 0) return;
    // Keeps the process alive, as a lookup and sockets that only watch do not.
    this.#check ??= setInterval(() => this.#checkWaiting(), waitersCheckIntervalMs);
    const count = this.#servers.length;
    // From anywhere, so that not every client begins with the same one.
    const start = Math.trunc(Math.random() * count);
    const turned = [...this.#servers.slice(start), ...this.#servers.slice(0, start)];
    const serving = turned.filter(({ isServing }) => isServing);
    const others = turned.filter(({ isServing }) => !isServing);
    let pending = others.filter(({ isPending }) => isPending).length;
    for (const server of others) {
      if (pending >= attemptsAtOnce) break;
      if (!server.mayConnect) continue;
      server.connect();
      pending++;
    }
    let left = this.#queue.size;
    for (const server of serving) if (left > 0) left -= server.grow(left);
    if (pending > 0 || serving.length > 0 || this.#book.isLooking) return;
    this.#failWaiting(this.#problem, ({ waitsForReady }) => !waitsForReady);
  }

  #checkWaiting(): void {
    this.#book.refresh();
    this.#connect();
    this.#queue.refuseLate(this.#servers.some(({ isServing }) => isServing));
    this.#restIfDone();
  }

  /** Why no call can be sent. */
  get #problem(): ConnectError {
    const problem = this.#servers.find((server) => server.problem !== undefined)?.problem ?? this.#book.problem;
    return problem ?? new ConnectError("no server is healthy", Code.Unavailable);
  }

  #serve(connection: UpstreamConnection): void {
    while (connection.room > 0) {
      const caller = this.#queue.shift();
      if (caller === undefined) return this.#restIfDone();
      caller.begin(connection.carrier);
    }
    this.#connect();
    this.#restIfDone();
  }

  /** Checks no more if no call waits. */
  #restIfDone(): void {
    if (this.#queue.size > 0 || this.#check === undefined) return;
    clearInterval(this.#check);
    this.#check = undefined;
    this.#queue.refuseLate(false);
  }

  #lost(): void {
    if (this.#closing !== undefined) return;
    if (this.#servers.some(({ isServing }) => isServing)) this.#tellWatchers();
    this.#book.doubt();
  }

  #tellWatchers(): void {
    for (const changed of this.#watchers) changed();
  }

  #tellClosed(): void {
    if (this.#closed !== undefined && this.load.connections === 0) this.#closed();
  }

  #failWaiting({ rawMessage, code, cause }: ConnectError, isMeant: (caller: Caller) => boolean = () => true): void {
    const waiting = this.#queue.removeAll(isMeant);
    this.#restIfDone();
    // An error for each: code that catches it may change its metadata.
    for (const caller of waiting) caller.refuse(new ConnectError(rawMessage, code, undefined, undefined, cause));
  }
}

/**
 * Creates an upstream: the servers that calls of transports go to. Connects when the first call is made.
 *
 * `await using`, or `close()`, ends it: calls that wait fail with `Unavailable`, others may end.
 *
 * @throws TypeError for options that do not exist, addresses that are none, or that mix schemes; RangeError for a number out of range; Error for
 * certificates or keys that cannot be read
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
  if (first === undefined) throw new TypeError("an upstream has no addresses");
  if (others.some(({ scheme }) => scheme !== first.scheme)) {
    throw new TypeError("the addresses of an upstream must all mean TLS, or none of them");
  }
  return [first, ...others];
}

function closed(): ConnectError {
  return new ConnectError("the transport is closed", Code.Unavailable);
}
