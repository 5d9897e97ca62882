import { setTimeout as sleep } from "node:timers/promises";
import { openPlantDatabase, type PlantDatabase } from "../../../src/stores/index.ts";
import type { Callers } from "./callers.ts";
import { databaseUrl } from "./node.ts";

/** How many plants are created at once. */
const batch = 500;

/** How many there are that nobody has asked for, at least. */
const leftMin = 1_000;

const lookIntervalMs = 200;

/** Milliseconds after which an import is given up: at a primary that was replaced it would wait forever. */
const patienceMs = 20_000;

/** Creates plants while callers delete them, because what was created last is what a stale answer would not know. */
export class PlantSupply {
  /** The plants whose creation was acknowledged. */
  readonly created: Set<number> = new Set();
  /** Those of which it is not known. */
  readonly perhapsCreated: Set<number> = new Set();
  readonly #callers: Callers;
  #isStopped = false;
  #running: Promise<void> = Promise.resolve();
  #last = 0;

  constructor(callers: Callers) {
    this.#callers = callers;
  }

  /** Begins to create plants. */
  start(): void {
    this.#running = this.#createForever();
  }

  /** Resolves once the last import has ended. */
  async stop(): Promise<void> {
    this.#isStopped = true;
    await this.#running;
  }

  async #createForever(): Promise<void> {
    while (!this.#isStopped) {
      if (this.#callers.left < leftMin) await this.#create().catch(() => undefined);
      await sleep(lookIntervalMs);
    }
  }

  async #create(): Promise<void> {
    const plants = Array.from({ length: batch }, () => ++this.#last);
    for (const plant of plants) this.perhapsCreated.add(plant);
    const stored = store(plants.map(BigInt));
    const isStored = await Promise.race([stored.then(() => true), sleep(patienceMs, false, { ref: false })]);
    if (!isStored) return;
    for (const plant of plants) {
      this.perhapsCreated.delete(plant);
      this.created.add(plant);
    }
    this.#callers.offer(plants);
  }
}

async function store(ids: readonly bigint[]): Promise<void> {
  const database: PlantDatabase = await openPlantDatabase({ kind: "postgres", url: databaseUrl("hosts") });
  await using plantImport = await database.startImport();
  await plantImport.add(ids);
}
