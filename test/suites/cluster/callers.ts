import { Agent, request } from "node:http";
import { json } from "node:stream/consumers";
import { setTimeout as sleep } from "node:timers/promises";
import { within } from "../../../protoport/testing/src/deadline.ts";
import type { Dice } from "../../../protoport/testing/src/dice.ts";
import type { Call, Outcome } from "./check-history.ts";

export const callerToken = "token-of-the-cluster-test";

export interface Connection {
  /** Deletes a plant, and never rejects. @param name - the call's request id @param key - its idempotency key */
  delete(plant: number, name: string, key?: string): Promise<Outcome>;
  close(): void;
}

export interface Replica {
  readonly machine: { readonly name: string };
  readonly replicaUrl: string;
  /** Opens a connection to the replica. Defaults to REST. */
  readonly open?: () => Connection;
}

export interface CallerOptions {
  readonly perReplica?: number;
  /** The pause between a response and the next call, in ms. Default 10, because a cluster shares the machine. */
  readonly pauseMs?: number;
}

/** A call's timeout in ms, longer than the ten seconds after which a store reports an unknown outcome. */
export const patienceMs = 12_000;
/** How long a replica, which retries each second, may take in ms to delete again after the cluster has recovered. */
const deletionLimitMs = 60_000;

const pollIntervalMs = 200;
/** Maximum number of earlier calls whose plants may be deleted a second time. */
const maxRecent = 1_000;

/** Callers that delete plants on all replicas until they are stopped, and record a history. */
export class Callers {
  readonly calls: Call[] = [];
  readonly #fresh: number[] = [];
  readonly #nodes: readonly Replica[];
  readonly #dice: Dice;
  readonly #perReplica: number;
  readonly #pauseMs: number;
  readonly #stopped = new AbortController();
  #running: Promise<unknown> = Promise.resolve();
  #count = 0;

  constructor(nodes: readonly Replica[], dice: Dice, { perReplica = 4, pauseMs = 10 }: CallerOptions = {}) {
    this.#nodes = nodes;
    this.#dice = dice;
    this.#perReplica = perReplica;
    this.#pauseMs = pauseMs;
  }

  offer(plants: readonly number[]): void {
    this.#fresh.push(...plants);
  }

  /** How many plants no call has tried to delete yet. */
  get remaining(): number {
    return this.#fresh.length;
  }

  start(): void {
    const all = this.#nodes.flatMap((node) => Array.from({ length: this.#perReplica }, () => this.#callOn(node)));
    this.#running = Promise.all(all);
  }

  async stop(): Promise<void> {
    this.#stopped.abort();
    await this.#running;
  }

  /** Resolves when on each replica a call that started after now has deleted a plant. */
  async untilAllDelete(): Promise<void> {
    const nowMs = performance.now();
    const waitForDeletion = async (node: Replica): Promise<void> => {
      while (!this.calls.some((call) => isDeletionOn(node, call) && call.startedMs > nowMs))
        await sleep(pollIntervalMs);
    };
    await Promise.all(
      this.#nodes.map((node) => within(waitForDeletion(node), `a deletion on ${node.machine.name}`, deletionLimitMs)),
    );
  }

  /** Returns the longest time in ms, since a time, in which no call on a replica deleted a plant. */
  longestPauseMs(node: Replica, sinceMs: number): number {
    const calls = this.calls.filter((call) => isDeletionOn(node, call) && call.endedMs >= sinceMs);
    const ends = calls.map(({ endedMs }) => endedMs);
    return Math.max(...ends.map((endMs, i) => endMs - (ends[i - 1] ?? sinceMs)));
  }

  async #callOn(node: Replica): Promise<void> {
    const connection = (node.open ?? (() => openRest(node.replicaUrl)))();
    while (!this.#stopped.signal.aborted) {
      const plant = this.#choosePlant();
      const name = `${node.machine.name}/${++this.#count}`;
      const startedMs = performance.now();
      const outcome = await connection.delete(plant, name);
      this.calls.push({ name, plant, startedMs, endedMs: performance.now(), outcome });
      await sleep(this.#pauseMs);
    }
    connection.close();
  }

  /** Seven in ten plants are new. For the others, an earlier call may still be running on another replica. */
  #choosePlant(): number {
    const earlier =
      this.calls.length === 0 ? undefined : this.calls.at(-1 - this.#dice.roll(Math.min(maxRecent, this.calls.length)));
    const isFresh = earlier === undefined || this.#dice.roll(10) < 7;
    return (isFresh ? this.#fresh.shift() : undefined) ?? earlier?.plant ?? 0;
  }
}

const isDeletionOn = (node: Replica, call: Call): boolean =>
  call.outcome === "deleted" && call.name.startsWith(`${node.machine.name}/`);

export function callHeader(name: string, key?: string): Record<string, string> {
  const header = { authorization: `Bearer ${callerToken}`, "x-request-id": name };
  return key === undefined ? header : { ...header, "idempotency-key": `"${key}"` };
}

/** Opens a connection that is kept alive, for REST. @param onStatus - is called with each response's status */
export function openRest(base: string, onStatus: (status: number) => void = () => undefined): Connection {
  const agent = new Agent({ keepAlive: true, maxSockets: 1 });
  return {
    delete: (plant, name, key) => deletePlant(`${base}/plants/${plant}`, agent, callHeader(name, key), onStatus),
    close: () => agent.destroy(),
  };
}

// Does not use fetch, which may retry a request.
async function deletePlant(
  url: string,
  agent: Agent,
  headers: Record<string, string>,
  onStatus: (status: number) => void,
): Promise<Outcome> {
  const { promise, resolve } = Promise.withResolvers<Outcome>();
  request(url, { agent, method: "DELETE", headers, signal: AbortSignal.timeout(patienceMs) })
    .on("error", (fault: NodeJS.ErrnoException) => resolve(fault.code === "ECONNREFUSED" ? "refused" : "unknown"))
    .on("response", (response) => {
      onStatus(response.statusCode ?? 0);
      // The proxy sends the empty message with 200.
      if (response.statusCode === 204 || response.statusCode === 200) resolve("deleted");
      const outcome = json(response).then((record) => outcomeOf(Object(record).message));
      outcome.then(resolve, () => resolve("unknown"));
    })
    .end();
  return await promise;
}

export function outcomeOf(message: unknown): Outcome {
  if (message === "the plant store cannot process the request at the moment") return "refused";
  return String(message).endsWith(" not found") ? "not found" : "unknown";
}
