import type { Socket } from "node:net";
import { inspect } from "node:util";
import type { HttpConnection } from "./http-server.ts";

/** The maximum connection age. */
export interface ConnectionAgeOptions {
  /**
   * Milliseconds after which a connection is closed, so that its client reconnects and a load balancer can choose
   * another server: MAX_CONNECTION_AGE in gRFC A9. A jitter up to a tenth prevents connections that began together from
   * closing together. HTTP/2 clients get GOAWAY and finish their streams. HTTP/1.1 connections close with `connection:
   * close` on the next response, or when idle for a second. Defaults to no maximum.
   */
  readonly maxConnectionAgeMs?: number | undefined;
  /**
   * Milliseconds that calls get to finish after the maximum age, before the connection is destroyed:
   * MAX_CONNECTION_AGE_GRACE. Defaults to no limit.
   */
  readonly maxConnectionAgeGraceMs?: number | undefined;
}

/** Closes connections that have reached the maximum age. While there are connections, one timer checks all. */
export class ConnectionAges {
  readonly #maxAgeMs: number;
  readonly #graceMs: number;
  /** When each open connection reaches the maximum age, in `performance.now()` milliseconds. */
  readonly #expiries = new Map<HttpConnection, number>();
  #timer: NodeJS.Timeout | undefined;

  constructor(maxAgeMs: number, graceMs: number) {
    this.#maxAgeMs = maxAgeMs;
    this.#graceMs = graceMs;
  }

  /** Counts a connection's age from now on. */
  add(socket: Socket, connection: HttpConnection): void {
    this.#timer ??= setInterval(() => this.#checkAges(), this.#checkIntervalMs()).unref();
    const jitter = 1 + (2 * Math.random() - 1) * jitterShare;
    this.#expiries.set(connection, performance.now() + this.#maxAgeMs * jitter);
    socket.on("close", () => this.#remove(connection));
  }

  #remove(connection: HttpConnection): void {
    this.#expiries.delete(connection);
    if (this.#expiries.size > 0) return;
    clearInterval(this.#timer);
    this.#timer = undefined;
  }

  #checkIntervalMs(): number {
    const shortestMs = Math.min(this.#maxAgeMs, this.#graceMs);
    return Math.min(intervalMsMax, Math.max(intervalMsMin, shortestMs / checksPerAge));
  }

  #checkAges(): void {
    const nowMs = performance.now();
    for (const [connection, expiryMs] of this.#expiries) {
      if (nowMs >= expiryMs + this.#graceMs) connection.destroy();
      else if (nowMs >= expiryMs) connection.retire();
    }
  }
}

/**
 * Creates the {@link ConnectionAges}. Returns `undefined` if there is no maximum age.
 *
 * @throws RangeError for a time that is not a number above 0
 */
export function createConnectionAges(options: ConnectionAgeOptions): ConnectionAges | undefined {
  const { maxConnectionAgeMs = Number.POSITIVE_INFINITY, maxConnectionAgeGraceMs = Number.POSITIVE_INFINITY } = options;
  for (const [name, ms] of Object.entries({ maxConnectionAgeMs, maxConnectionAgeGraceMs })) {
    // `!(ms > 0)` also rejects NaN, unlike `ms <= 0`. A JavaScript program may pass a string from its environment.
    if (typeof ms !== "number" || !(ms > 0))
      throw new RangeError(`${name} must be a number above 0, got ${inspect(ms)}`);
  }
  if (maxConnectionAgeMs === Number.POSITIVE_INFINITY) return undefined;
  return new ConnectionAges(maxConnectionAgeMs, maxConnectionAgeGraceMs);
}

/** The maximum age's jitter: ±10 %, as in gRFC A9. */
const jitterShare = 0.1;
// Ages are minutes, so a second more does not matter. Checking 10,000 connections takes less than a millisecond.
const intervalMsMax = 1000;
const intervalMsMin = 10;
// No age is exceeded by more than a tenth.
const checksPerAge = 10;
