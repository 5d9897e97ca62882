import { Agent, request } from "node:http";
import { json } from "node:stream/consumers";
import { setTimeout as sleep } from "node:timers/promises";
import { within } from "../../../packages/testing/src/deadline.ts";
import type { Dice } from "../../../packages/testing/src/dice.ts";
import type { Call, Outcome } from "./check-history.ts";

/** The credential of the callers. */
export const callerToken = "token-of-the-cluster-test";

/** A replica of the plant store, which callers reach at its URL. */
export interface Replica {
  readonly machine: { readonly name: string };
  readonly replicaUrl: string;
}

/** Callers on each replica. */
const callersPerReplica = 4;

/** Milliseconds between an answer and the next call: the machine is shared by everything of the cluster. */
const pauseMs = 10;

/** Milliseconds. A caller that waits longer asks again, and does not know what became of its first request. */
const patienceMs = 8_000;

/** Milliseconds within which a replica deletes again once the cluster is whole: it tries each second. */
const deletionLimitMs = 60_000;

const lookIntervalMs = 200;

/** The most calls whose plants may be asked for a second time. */
const recentMax = 1_000;

/** Callers that delete plants on every replica until they are stopped, and keep a history. */
export class Callers {
  readonly calls: Call[] = [];
  readonly #fresh: number[] = [];
  readonly #nodes: readonly Replica[];
  readonly #dice: Dice;
  readonly #stopped = new AbortController();
  #running: Promise<unknown> = Promise.resolve();
  #count = 0;

  constructor(nodes: readonly Replica[], dice: Dice) {
    this.#nodes = nodes;
    this.#dice = dice;
  }

  /** Lets plants be asked for, whose creation was acknowledged. */
  offer(plants: readonly number[]): void {
    this.#fresh.push(...plants);
  }

  /** Plants that no call has asked for yet. */
  get left(): number {
    return this.#fresh.length;
  }

  /** Begins to call. */
  start(): void {
    const all = this.#nodes.flatMap((node) => Array.from({ length: callersPerReplica }, () => this.#callOn(node)));
    this.#running = Promise.all(all);
  }

  /** Resolves once every call has ended. */
  async stop(): Promise<void> {
    this.#stopped.abort();
    await this.#running;
  }

  /** Resolves once a call on each replica that began after now has deleted a plant. */
  async untilAllDelete(): Promise<void> {
    const nowMs = performance.now();
    const look = async (node: Replica): Promise<void> => {
      while (!this.calls.some((call) => isDeletionOn(node, call) && call.startedMs > nowMs))
        await sleep(lookIntervalMs);
    };
    const looks = this.#nodes.map((node) => within(look(node), `a deletion on ${node.machine.name}`, deletionLimitMs));
    await Promise.all(looks);
  }

  /** The longest time, in milliseconds since a time, in which no call on a replica was told that it has deleted a plant. */
  longestPauseMs(node: Replica, sinceMs: number): number {
    const ends = this.calls
      .filter((call) => isDeletionOn(node, call) && call.endedMs >= sinceMs)
      .map(({ endedMs }) => endedMs);
    return Math.max(...ends.map((endMs, i) => endMs - (ends[i - 1] ?? sinceMs)));
  }

  async #callOn(node: Replica): Promise<void> {
    const agent = new Agent({ keepAlive: true, maxSockets: 1 });
    while (!this.#stopped.signal.aborted) {
      const plant = this.#choosePlant();
      const name = `${node.machine.name}/${++this.#count}`;
      const startedMs = performance.now();
      const outcome = await deletePlant(node.replicaUrl, agent, plant, name);
      this.calls.push({ name, plant, startedMs, endedMs: performance.now(), outcome });
      await sleep(pauseMs);
    }
    agent.destroy();
  }

  /** Seven of ten are new; the others were asked for before, perhaps by a call that still runs on another replica. */
  #choosePlant(): number {
    const earlier =
      this.calls.length === 0 ? undefined : this.calls.at(-1 - this.#dice.roll(Math.min(recentMax, this.calls.length)));
    const isFresh = earlier === undefined || this.#dice.roll(10) < 7;
    return (isFresh ? this.#fresh.shift() : undefined) ?? earlier?.plant ?? 0;
  }
}

function isDeletionOn(node: Replica, call: Call): boolean {
  return call.outcome === "deleted" && call.name.startsWith(`${node.machine.name}/`);
}

// Not fetch: it may send a request a second time by itself.
async function deletePlant(base: string, agent: Agent, plant: number, name: string): Promise<Outcome> {
  const { promise, resolve } = Promise.withResolvers<Outcome>();
  const headers = { authorization: `Bearer ${callerToken}`, "x-request-id": name };
  const options = { agent, method: "DELETE", headers, signal: AbortSignal.timeout(patienceMs) };
  request(`${base}/plants/${plant}`, options)
    .on("error", (fault: NodeJS.ErrnoException) => resolve(fault.code === "ECONNREFUSED" ? "refused" : "unknown"))
    .on("response", (response) => {
      if (response.statusCode === 204) resolve("deleted");
      json(response).then(
        (record) => resolve(outcomeOf(Object(record).message)),
        () => resolve("unknown"),
      );
    })
    .end();
  return await promise;
}

function outcomeOf(message: unknown): Outcome {
  if (message === "the plant store cannot delete at the moment") return "refused";
  return String(message).endsWith(" not found") ? "not found" : "unknown";
}
