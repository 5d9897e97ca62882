import { setTimeout as sleep } from "node:timers/promises";
import type { Callers } from "./callers.ts";

const batch = 500;
/** The fewest plants that no call has tried to delete. */
const minLeft = 1_000;

const pollIntervalMs = 200;
/** An import's timeout in ms. After a failover, the import would wait forever for the old primary. */
const patienceMs = 20_000;

/** Creates plants while callers delete them, because a stale read would miss the newest plants. */
export class PlantSupply {
  readonly created: Set<number> = new Set();
  readonly perhapsCreated: Set<number> = new Set();
  readonly #callers: Callers;
  readonly #store: (ids: readonly bigint[]) => Promise<void>;
  #isStopped = false;
  #running: Promise<void> = Promise.resolve();
  #last = 0;

  /** @param store - imports plants; rejects if the outcome is unknown */
  constructor(callers: Callers, store: (ids: readonly bigint[]) => Promise<void>) {
    this.#callers = callers;
    this.#store = store;
  }

  start(): void {
    this.#running = this.#createForever();
  }

  async stop(): Promise<void> {
    this.#isStopped = true;
    await this.#running;
  }

  async #createForever(): Promise<void> {
    while (!this.#isStopped) {
      if (this.#callers.remaining < minLeft) await this.#create().catch(() => undefined);
      await sleep(pollIntervalMs);
    }
  }

  async #create(): Promise<void> {
    const plants = Array.from({ length: batch }, () => ++this.#last);
    for (const plant of plants) this.perhapsCreated.add(plant);
    const stored = this.#store(plants.map(BigInt));
    const isStored = await Promise.race([stored.then(() => true), sleep(patienceMs, false, { ref: false })]);
    if (!isStored) return;
    for (const plant of plants) {
      this.perhapsCreated.delete(plant);
      this.created.add(plant);
    }
    this.#callers.offer(plants);
  }
}
