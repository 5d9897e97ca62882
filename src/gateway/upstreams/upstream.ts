import { Code, ConnectError } from "@connectrpc/connect";
import { BacklogBudget } from "../carriers/index.ts";
import type { ClientConnection } from "../http2/client/index.ts";
import { AddressBook } from "./address-book.ts";
import { prepareTls } from "./open-socket.ts";
import { pickServer } from "./pick-server.ts";
import { readUpstreamAddress, type UpstreamAddress } from "./upstream-address.ts";
import type { ServerSettings, UpstreamConnection } from "./upstream-connection.ts";
import { toClientLimits, type UpstreamLimits } from "./upstream-limits.ts";
import { readUpstreamOptions, type UpstreamOptions } from "./upstream-options.ts";
import { type ServerEvents, UpstreamServer } from "./upstream-server.ts";

/** A call that wants a stream. */
export interface Caller {
  /** Whether it waits for as long as no server can be reached, rather than to be refused. */
  readonly waitsForReady: boolean;
  /** Called once, with a connection that has room: the stream must be opened before this returns. */
  begin(connection: ClientConnection): void;
  /** Called instead when there is none: `Unavailable`, or `ResourceExhausted` when too many calls wait. */
  refuse(error: ConnectError): void;
}

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
}

/** Milliseconds between two looks at what calls wait for. 100 ms: a tenth of the shortest back-off. */
const lookEveryMs = 100;

/** Servers that are connected to at once because calls wait. 2: if the first is of no use, another is on its way. */
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
  readonly #waiting = new Set<Caller>();
  readonly #watchers = new Set<() => void>();
  /** Runs while calls wait: those that no event wakes, as a back-off is over or a name may be looked up again. */
  #look: NodeJS.Timeout | undefined;
  #closing: Promise<void> | undefined;
  #closed: (() => void) | undefined;
  readonly #events: ServerEvents = {
    onRoom: (connection) => this.#serve(connection),
    onChange: () => this.#connect(),
    onConnected: () => this.#tellWatchers(),
    onLost: () => this.#lost(),
  };

  /** See {@link createUpstream}. */
  constructor(options: UpstreamOptions) {
    const settings = readUpstreamOptions(options);
    const { tls, limits, connections, keepaliveMs, healthService, maxConnectionAgeMs } = settings;
    const [first, ...others] = readAddresses(settings.addresses, tls !== undefined);
    this.scheme = first.scheme;
    this.authority = first.authority;
    this.#limits = limits;
    this.#settings = {
      tls: first.scheme === "https" ? prepareTls(tls) : undefined,
      connections,
      keepaliveMs,
      healthService,
      maxConnectionAgeMs,
      limits,
      http2Limits: toClientLimits(limits, keepaliveMs),
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
    const { size: waitingCalls } = this.#waiting;
    return { servers: this.#servers.length, connections, calls, waitingCalls, queuedBytes: this.#budget.bytes };
  }

  /** Gives a call a stream: at once, or when there is one. For transports. */
  call(caller: Caller): void {
    if (this.#closing !== undefined) return caller.refuse(closed());
    if (this.#budget.bytes > this.#limits.queuedBytes) {
      return caller.refuse(new ConnectError("too many bytes wait to be sent", Code.ResourceExhausted));
    }
    const connection = this.#findRoom();
    this.#book.refresh();
    if (connection !== undefined) return caller.begin(connection.carrier);
    if (this.#waiting.size >= this.#limits.waitingCalls) {
      return caller.refuse(new ConnectError("too many calls wait for the server", Code.ResourceExhausted));
    }
    this.#waiting.add(caller);
    this.#connect();
  }

  /** Forgets a call that waits. For transports. */
  leave(caller: Caller): void {
    this.#waiting.delete(caller);
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
    if (this.#waiting.size === 0) return;
    // Keeps the process alive, as a lookup and sockets that only watch do not.
    this.#look ??= setInterval(() => {
      this.#book.refresh();
      this.#connect();
    }, lookEveryMs);
    const count = this.#servers.length;
    let pending = this.#servers.filter(({ isPending }) => isPending).length;
    // From anywhere, so that not every client begins with the same one.
    const start = Math.trunc(Math.random() * count);
    const turned = [...this.#servers.slice(start), ...this.#servers.slice(0, start)];
    for (const server of turned) {
      if (pending >= attemptsAtOnce) return;
      if (server.isServing || !server.mayConnect) continue;
      server.connect();
      pending++;
    }
    if (pending > 0) return;
    // All that can be reached are, and have no room.
    const further = pickServer(turned.filter(({ mayConnect }) => mayConnect));
    if (further !== undefined) further.connect();
    else if (!this.#book.isLooking && !turned.some(({ isServing }) => isServing)) {
      this.#failWaiting(this.#problem, ({ waitsForReady }) => !waitsForReady);
    }
  }

  /** Why no call can be sent. */
  get #problem(): ConnectError {
    const problem = this.#servers.find((server) => server.problem !== undefined)?.problem ?? this.#book.problem;
    return problem ?? new ConnectError("no server is healthy", Code.Unavailable);
  }

  #serve(connection: UpstreamConnection): void {
    for (const caller of this.#waiting) {
      if (connection.room <= 0) return this.#connect();
      this.#waiting.delete(caller);
      caller.begin(connection.carrier);
    }
    this.#restIfDone();
  }

  /** Looks no more if no call waits. */
  #restIfDone(): void {
    if (this.#waiting.size > 0) return;
    clearInterval(this.#look);
    this.#look = undefined;
  }

  #lost(): void {
    if (this.#closing !== undefined) this.#tellClosed();
    else {
      if (this.#servers.some(({ isServing }) => isServing)) this.#tellWatchers();
      this.#book.doubt();
    }
  }

  #tellWatchers(): void {
    for (const changed of this.#watchers) changed();
  }

  #tellClosed(): void {
    const { connections } = this.load;
    if (connections === 0) this.#closed?.();
  }

  #failWaiting({ rawMessage, code, cause }: ConnectError, isMeant: (caller: Caller) => boolean = () => true): void {
    const waiting = [...this.#waiting].filter(isMeant);
    for (const caller of waiting) this.#waiting.delete(caller);
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
 * @throws TypeError for addresses that are none, or that mix schemes; RangeError for a number out of range; Error for
 * certificates or keys that cannot be read
 */
export function createUpstream(options: UpstreamOptions): Upstream {
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
