import { lookup } from "node:dns/promises";
import { Code, ConnectError } from "@connectrpc/connect";
import { messageOf } from "@plantstore/gateway/internal/errors";
import { ConnectBackoff } from "./connect-backoff.ts";
import type { UpstreamAddress } from "./upstream-address.ts";
import { lookupGapMs, serversMax } from "./upstream-limits.ts";
import type { UpstreamLookup, UpstreamSettings } from "./upstream-options.ts";

/**
 * Where the servers of an upstream are: the addresses that it was given, and those that its names stand for. These are
 * looked up when the first call is made, again from time to time as long as there are calls, and after a loss.
 */
export class AddressBook {
  readonly #given: readonly UpstreamAddress[];
  readonly #names: readonly UpstreamAddress[];
  readonly #resolveEveryMs: number;
  readonly #timeoutMs: number;
  readonly #lookup: UpstreamLookup;
  readonly #changed: () => void;
  readonly #backoff = new ConnectBackoff();
  /** What names stood for when that was last known. */
  readonly #found = new Map<UpstreamAddress, readonly UpstreamAddress[]>();
  #begunAtMs = Number.NEGATIVE_INFINITY;
  #dueAtMs = 0;
  /** Whether names are being looked up. */
  isLooking = false;
  /** Why the last lookup failed. */
  problem: ConnectError | undefined;

  constructor(given: readonly UpstreamAddress[], settings: UpstreamSettings, changed: () => void) {
    this.#given = given;
    this.#names = given.filter(({ isName }) => isName);
    this.#resolveEveryMs = settings.resolveEveryMs;
    this.#timeoutMs = settings.limits.connectTimeoutMs;
    this.#lookup = settings.lookup ?? ((host) => lookup(host, { all: true }));
    this.#changed = changed;
  }

  /** The addresses of all servers that are known, each once. */
  get addresses(): ReadonlyMap<string, UpstreamAddress> {
    const all = this.#given.flatMap((address) => (address.isName ? (this.#found.get(address) ?? []) : [address]));
    return new Map(all.slice(0, serversMax).map((address) => [JSON.stringify(address.target), address]));
  }

  /** Whether it is too early to look names up again. */
  get waits(): boolean {
    // Each call asks, and the clock costs more. No test can tell: there would be nothing to look up.
    if (this.#names.length === 0) return true;
    return performance.now() < this.#dueAtMs;
  }

  /** Looks names up if it is time to. */
  refresh(): void {
    if (this.isLooking || this.waits) return;
    this.isLooking = true;
    this.#begunAtMs = performance.now();
    void this.#lookUpAll();
  }

  /** Looks names up soon, because a connection was lost: its server may be gone. */
  doubt(): void {
    this.#dueAtMs = Math.min(this.#dueAtMs, this.#begunAtMs + lookupGapMs);
    this.refresh();
  }

  /** Never rejects. */
  async #lookUpAll(): Promise<void> {
    this.problem = undefined;
    await Promise.all(this.#names.map((name) => this.#lookUp(name)));
    this.isLooking = false;
    if (this.problem === undefined) {
      this.#backoff.succeeded();
      this.#dueAtMs = this.#begunAtMs + this.#resolveEveryMs;
    } else {
      this.#dueAtMs = this.#backoff.failed(this.#begunAtMs);
    }
    this.#changed();
  }

  async #lookUp(name: UpstreamAddress): Promise<void> {
    const { host, target } = name;
    if (!("port" in target)) return;
    const { promise: late, reject } = Promise.withResolvers<never>();
    const timeoutMs = this.#timeoutMs;
    const timer = setTimeout(() => reject(new Error(`no answer within ${timeoutMs} ms`)), timeoutMs);
    try {
      const found = await Promise.race([this.#lookup(host), late]);
      if (found.length === 0) throw new Error("it has no address");
      this.#found.set(
        name,
        found.map(({ address }) => ({ ...name, target: { host: address, port: target.port } })),
      );
    } catch (error) {
      const reason = messageOf(error);
      const message = `cannot look up ${host}: ${reason}`;
      this.problem = new ConnectError(message, Code.Unavailable, undefined, undefined, error);
    } finally {
      clearTimeout(timer);
    }
  }
}
