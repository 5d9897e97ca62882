import { integerBetween, maxTimerMs, refuseUnknownOptions, required, requireObject } from "../http/index.ts";

/** A part of the server that may fail, such as a database connection. */
export interface ServerPart {
  /** The problem for an operator, or `undefined` while the part can serve. Reading the property must be cheap. */
  readonly problem?: string | undefined;
  /** Whether the server stays ready if this part fails. Probes then report the part as degraded. Default `false`. */
  readonly isOptional?: boolean;
}

/**
 * The readiness of a server to receive calls. Probes, gRPC health and the drain use the readiness.
 *
 * Readiness is computed on demand and never stored, so the result cannot be out of date.
 */
export class Readiness {
  readonly #parts: () => Readonly<Record<string, ServerPart>>;
  readonly #drain = new AbortController();

  /**
   * @param parts - the server's parts by the names that probes report, or a function that returns parts that change.
   * Names must not be secret, because probes need no credential
   * @throws TypeError with the code ERR_OPTIONS if `parts` is neither an object nor a function
   */
  constructor(parts: Readonly<Record<string, ServerPart>> | (() => Readonly<Record<string, ServerPart>>)) {
    if (typeof parts !== "function") requireObject(parts, "Readiness", "parts");
    this.#parts = typeof parts === "function" ? parts : () => parts;
  }

  /** Makes a server that is about to stop permanently not ready. */
  startDraining(): void {
    this.#drain.abort();
  }

  /** The signal that aborts when the server starts to drain. */
  get draining(): AbortSignal {
    return this.#drain.signal;
  }

  /** Returns `"draining"` and the names of failed required parts. The array is empty when the server is ready. */
  obstacles(): string[] {
    const names = [...this.problems().keys()];
    return this.draining.aborted ? ["draining", ...names] : names;
  }

  /** Returns the problems of failed required parts, by part name. The texts are for operators only. */
  problems(): ReadonlyMap<string, string> {
    return this.#problemsOf(false);
  }

  /** Returns the names of optional parts that cannot serve. */
  degraded(): string[] {
    return [...this.#problemsOf(true).keys()];
  }

  #problemsOf(optional: boolean): ReadonlyMap<string, string> {
    const problems = new Map<string, string>();
    for (const [name, { problem, isOptional = false }] of Object.entries(this.#parts())) {
      if (problem !== undefined && isOptional === optional) problems.set(name, problem);
    }
    return problems;
  }
}

/** The durations of the phases of a graceful shutdown. */
export interface DrainTimes {
  /** Milliseconds in which a server serves calls although it is not ready. Load balancers need this delay to react. */
  readonly delayMs: number;
  /** Milliseconds that running calls may take after the delay. Calls that take longer are aborted. */
  readonly timeoutMs: number;
}

/** The defaults for {@link DrainTimes}. The sum is below the 30 s after which Kubernetes kills a container. */
export const drainTimesDefault: DrainTimes = { delayMs: 5_000, timeoutMs: 20_000 };

const drainTimeCheck = integerBetween(0, maxTimerMs, required);

/** The maximum in milliseconds for each of the {@link DrainTimes}. Values above an hour are most likely typos. */
export const maxDrainMs = 3_600_000;

/**
 * Stops a server behind a load balancer without losing a call. The server reports that it is not ready, and serves
 * calls for the delay. Then the server refuses new connections (on HTTP/2 with a GOAWAY, RFC 9113 §6.8) and finishes
 * running calls.
 *
 * @param server - a gateway or a proxy
 * @returns a promise that resolves when the last call has ended, at the latest after the sum of both times
 * @throws TypeError for unknown, missing or invalid times
 */
export async function drainGracefully(
  server: { drain(timeoutMs: number): Promise<void> },
  readiness: Pick<Readiness, "startDraining">,
  times: DrainTimes,
): Promise<void> {
  refuseUnknownOptions(times, { delayMs: drainTimeCheck, timeoutMs: drainTimeCheck }, "drainGracefully");
  const { delayMs, timeoutMs } = times;
  readiness.startDraining();
  if (delayMs > 0) await new Promise((resolve) => setTimeout(resolve, delayMs));
  await server.drain(timeoutMs);
}
