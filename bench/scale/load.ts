import { fork } from "node:child_process";
import { fileURLToPath } from "node:url";
import { plantStoreFlags } from "../plant-store-flags.ts";
import { nextMessage, stop } from "../running-server.ts";
import type { CallersOrder, CallersSaid } from "./callers.ts";

/** What callers have done, and what it cost. */
export interface Turn {
  readonly deletions: number;
  /** The mean size of a batch. */
  readonly batch: number;
  /** CPU time of a process with callers for a deletion, in µs: the least of all. */
  readonly processUs: number;
  /** What the meters have gone up for each deletion. */
  readonly metered: readonly number[];
}

/** Plants that are deleted turn by turn, each once. */
export class Plants {
  readonly url: string;
  readonly count: number;
  readonly #ofTurn: number;
  #given = 0;

  /**
   * @param count - the plants have the ids from 1 to this
   * @param ofTurn - the most that are deleted in a turn
   */
  constructor(url: string, count: number, ofTurn: number) {
    this.url = url;
    this.count = count;
    this.#ofTurn = ofTurn;
  }

  /** Lets processes with so many callers each delete for some seconds, and reads the meters before and after that. */
  async delete(
    callers: readonly number[],
    seconds: number,
    readMeters: () => Promise<readonly number[]>,
  ): Promise<Turn> {
    // On whatever core: where there are two, none is left for callers alone.
    const children = callers.map((count) => {
      const order = { url: this.url, callers: count, seconds, plants: this.count, places: this.#give(callers.length) };
      const program = fileURLToPath(new URL("callers.ts", import.meta.url));
      return fork(program, [JSON.stringify(order satisfies CallersOrder)], { execArgv: [...plantStoreFlags] });
    });
    try {
      await Promise.all(children.map((child) => nextMessage<Said<"warm">>(child, "warm")));
      const before = await readMeters();
      for (const child of children) child.send("go");
      const done = await Promise.all(children.map((child) => nextMessage<Said<"done">>(child, "done")));
      const after = await readMeters();
      const deletions = sum(done.map((one) => one.deletions));
      if (deletions === 0) throw new Error("nothing was deleted: there are too few plants for so many turns");
      return {
        deletions,
        batch: deletions / sum(done.map(({ batches }) => batches)),
        processUs: Math.min(...done.map((one) => one.cpuUs / one.deletions)),
        metered: after.map((value, at) => (value - (before[at] ?? 0)) / deletions),
      };
    } finally {
      await Promise.all(children.map(stop));
    }
  }

  #give(processes: number): CallersOrder["places"] {
    const first = this.#given;
    this.#given = Math.min(first + Math.floor(this.#ofTurn / processes), this.count);
    return { first, end: this.#given };
  }
}

type Said<Kind> = Extract<CallersSaid, { kind: Kind }>;

/** Runs so many turns one after the other, and returns the one in which a meter has gone up least. */
export async function leastOf(count: number, meter: number, take: () => Promise<Turn>): Promise<Turn> {
  let least = await take();
  for (let turn = 1; turn < count; turn++) {
    const next = await take();
    if ((next.metered[meter] ?? 0) < (least.metered[meter] ?? 0)) least = next;
  }
  return least;
}

function sum(figures: readonly number[]): number {
  return figures.reduce((all, one) => all + one, 0);
}
