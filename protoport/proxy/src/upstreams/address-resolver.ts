import { lookup } from "node:dns/promises";
import { Code, ConnectError } from "@connectrpc/connect";
import { messageOf } from "@protoport/gateway/errors";
import { ConnectBackoff } from "./connect-backoff.ts";
import type { UpstreamAddress } from "./upstream-address.ts";
import { lookupGapMs, maxServers } from "./upstream-limits.ts";
import type { CompleteUpstreamOptions, UpstreamLookup } from "./upstream-options.ts";

/**
 * An upstream's server addresses, which are configured or resolved from names. Names are resolved at the first call,
 * periodically while calls are made, and after a connection was lost.
 */
export class AddressResolver {
  readonly #configured: readonly UpstreamAddress[];
  readonly #names: readonly UpstreamAddress[];
  readonly #resolveEveryMs: number;
  readonly #timeoutMs: number;
  readonly #lookup: UpstreamLookup;
  readonly #onChange: () => void;
  readonly #backoff = new ConnectBackoff();
  /** The addresses from each name's last successful lookup. */
  readonly #resolved = new Map<UpstreamAddress, readonly UpstreamAddress[]>();
  #begunAtMs = Number.NEGATIVE_INFINITY;
  #dueAtMs = 0;
  /** Whether names are being resolved. */
  isResolving = false;
  /** Whether a connection was lost since the last lookup began, so that its addresses may be outdated. */
  #isOutdated = false;
  /** The error from the last lookup, or `undefined` if the lookup succeeded. */
  problem: ConnectError | undefined;

  constructor(configured: readonly UpstreamAddress[], settings: CompleteUpstreamOptions, onChange: () => void) {
    this.#configured = configured;
    this.#names = configured.filter(({ isName }) => isName);
    this.#resolveEveryMs = settings.resolveEveryMs;
    this.#timeoutMs = settings.limits.connectTimeoutMs;
    this.#lookup = settings.lookup ?? ((host) => lookup(host, { all: true }));
    this.#onChange = onChange;
  }

  /** All known servers' distinct addresses. */
  get addresses(): ReadonlyMap<string, UpstreamAddress> {
    const addresses = this.#configured.flatMap((address) =>
      address.isName ? (this.#resolved.get(address) ?? []) : [address],
    );
    return new Map(addresses.slice(0, maxServers).map((address) => [JSON.stringify(address.target), address]));
  }

  /** Whether it is too early to resolve names again. */
  get isTooEarly(): boolean {
    // Without names, calls need not read the clock.
    // equivalent mutant: without names, a lookup does nothing.
    if (this.#names.length === 0) return true;
    return performance.now() < this.#dueAtMs;
  }

  /** Resolves names if the interval has passed. */
  refresh(): void {
    if (this.isResolving || this.isTooEarly) return;
    this.isResolving = true;
    this.#isOutdated = false;
    this.#begunAtMs = performance.now();
    void this.#resolveAll();
  }

  /** Resolves names soon, because a connection was lost and its server may be gone. */
  refreshSoon(): void {
    this.#isOutdated = true;
    this.#dueAtMs = Math.min(this.#dueAtMs, this.#begunAtMs + lookupGapMs);
    this.refresh();
  }

  /** Resolves all names. Never rejects. */
  async #resolveAll(): Promise<void> {
    this.problem = undefined;
    await Promise.all(this.#names.map((name) => this.#resolve(name)));
    this.isResolving = false;
    if (this.problem === undefined) {
      this.#backoff.succeeded();
      const intervalMs = this.#isOutdated ? Math.min(lookupGapMs, this.#resolveEveryMs) : this.#resolveEveryMs;
      this.#dueAtMs = this.#begunAtMs + intervalMs;
    } else {
      this.#dueAtMs = this.#backoff.failed(this.#begunAtMs);
    }
    this.#onChange();
  }

  async #resolve(name: UpstreamAddress): Promise<void> {
    const { host, target } = name;
    if (!("port" in target)) return;
    const { promise: timeout, reject } = Promise.withResolvers<never>();
    const timeoutMs = this.#timeoutMs;
    const timer = setTimeout(() => reject(new Error(`timed out after ${timeoutMs} ms`)), timeoutMs);
    try {
      const addresses = await Promise.race([this.#lookup(host), timeout]);
      if (addresses.length === 0) throw new Error("no address found");
      this.#resolved.set(
        name,
        addresses.map(({ address }) => ({ ...name, target: { host: address, port: target.port } })),
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
