import type { Socket } from "node:net";
import { inspect } from "node:util";
import type { HttpConnection } from "./http-server.ts";

/** How old connections may become. */
export interface ConnectionAgeOptions {
  /**
   * Milliseconds after which a connection is ended, so that its client connects anew and a balancer of connections can
   * choose another server: MAX_CONNECTION_AGE of gRFC A9. Up to a tenth more or less, so that connections that began
   * together do not end together. HTTP/2 is told by GOAWAY and finishes its streams; HTTP/1.1 by `connection: close` on
   * the next answer, and by the end of a connection that is idle for a second. Default none: connections may live on.
   */
  readonly maxConnectionAgeMs?: number | undefined;
  /**
   * Milliseconds that calls get to finish once their connection is so old; it is cut off then:
   * MAX_CONNECTION_AGE_GRACE. Default none: every call may finish.
   */
  readonly maxConnectionAgeGraceMs?: number | undefined;
}

/** Ends connections that have reached their age. One clock looks at all of them, while there are any. */
export class ConnectionAges {
  readonly #maxAgeMs: number;
  readonly #graceMs: number;
  /** When each open connection is to end, by `performance.now()`. */
  readonly #ends = new Map<HttpConnection, number>();
  #clock: NodeJS.Timeout | undefined;

  constructor(maxAgeMs: number, graceMs: number) {
    this.#maxAgeMs = maxAgeMs;
    this.#graceMs = graceMs;
  }

  /** Counts the age of a connection from now on. */
  add(socket: Socket, connection: HttpConnection): void {
    this.#clock ??= setInterval(() => this.#look(), this.#lookEveryMs()).unref();
    const jitter = 1 + (2 * Math.random() - 1) * jitterShare;
    this.#ends.set(connection, performance.now() + this.#maxAgeMs * jitter);
    socket.on("close", () => this.#remove(connection));
  }

  #remove(connection: HttpConnection): void {
    this.#ends.delete(connection);
    if (this.#ends.size > 0) return;
    clearInterval(this.#clock);
    this.#clock = undefined;
  }

  #lookEveryMs(): number {
    const shortestMs = Math.min(this.#maxAgeMs, this.#graceMs);
    return Math.min(lookEveryMsMax, Math.max(lookEveryMsMin, shortestMs / looksPerAge));
  }

  #look(): void {
    const nowMs = performance.now();
    for (const [connection, endMs] of this.#ends) {
      if (nowMs >= endMs + this.#graceMs) connection.destroy();
      else if (nowMs >= endMs) connection.retire();
    }
  }
}

/**
 * Creates what ends connections of an age; `undefined` if they may live on.
 *
 * @throws RangeError for a time that is no number above 0
 */
export function createConnectionAges(options: ConnectionAgeOptions): ConnectionAges | undefined {
  const { maxConnectionAgeMs = Number.POSITIVE_INFINITY, maxConnectionAgeGraceMs = Number.POSITIVE_INFINITY } = options;
  for (const [name, ms] of Object.entries({ maxConnectionAgeMs, maxConnectionAgeGraceMs })) {
    // Not `ms <= 0`, which lets NaN pass. A program without types may hand on a text of its environment.
    if (typeof ms !== "number" || !(ms > 0))
      throw new RangeError(`${name} must be a number above 0, got ${inspect(ms)}`);
  }
  if (maxConnectionAgeMs === Number.POSITIVE_INFINITY) return undefined;
  return new ConnectionAges(maxConnectionAgeMs, maxConnectionAgeGraceMs);
}

/** How far the age of a connection may be from the one that was asked for: ±10 %, as gRFC A9 has it. */
const jitterShare = 0.1;
// Ages are minutes: a second more does not matter, and to look at 10,000 connections takes less than a millisecond.
const lookEveryMsMax = 1000;
const lookEveryMsMin = 10;
// No age is missed by more than a tenth.
const looksPerAge = 10;
