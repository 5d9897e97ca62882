import { fork } from "node:child_process";
import { fileURLToPath } from "node:url";
import { nextMessage, stop } from "../../protoport/bench/running-server.ts";
import type { CallersOptions, CallersMessage } from "./callers.ts";

/** The deletions in a turn, and their cost. */
export interface Turn {
  readonly deletions: number;
  /** The mean size of a batch. */
  readonly batch: number;
  /** CPU time per deletion, in µs, in the caller process with the lowest CPU time. */
  readonly processUs: number;
  /** Each meter's increase per deletion. */
  readonly metered: readonly number[];
}

/** Plants that are deleted in turns. Each plant is deleted once. */
export class Plants {
  readonly url: string;
  readonly count: number;
  readonly #ofTurn: number;
  #assigned = 0;

  /**
   * @param count - the number of plants, whose ids are 1 to `count`
   * @param ofTurn - the maximum number of plants that are deleted in a turn
   */
  constructor(url: string, count: number, ofTurn: number) {
    this.url = url;
    this.count = count;
    this.#ofTurn = ofTurn;
  }

  /**
   * Runs a process for each number of callers. The callers delete plants for some seconds. Meters are read before and
   * after.
   */
  async delete(
    callers: readonly number[],
    seconds: number,
    readMeters: () => Promise<readonly number[]>,
  ): Promise<Turn> {
    // The processes are not pinned to cores, because a machine with two cores has no core to spare for callers.
    const children = callers.map((count) => {
      const order = { url: this.url, callers: count, seconds, plants: this.count, range: this.#assign(callers.length) };
      const program = fileURLToPath(new URL("callers.ts", import.meta.url));
      return fork(program, [JSON.stringify(order satisfies CallersOptions)]);
    });
    try {
      await Promise.all(children.map((child) => nextMessage<Message<"warm">>(child, "warm")));
      const before = await readMeters();
      for (const child of children) child.send("go");
      const done = await Promise.all(children.map((child) => nextMessage<Message<"done">>(child, "done")));
      const after = await readMeters();
      const deletions = sum(done.map((one) => one.deletions));
      if (deletions === 0) throw new Error("nothing was deleted: too few plants for the number of turns");
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

  #assign(processes: number): CallersOptions["range"] {
    const first = this.#assigned;
    this.#assigned = Math.min(first + Math.floor(this.#ofTurn / processes), this.count);
    return { first, end: this.#assigned };
  }
}

type Message<Kind> = Extract<CallersMessage, { kind: Kind }>;

/** Runs turns one after the other, and returns the turn in which a meter has increased least. */
export async function leastOf(count: number, meter: number, run: () => Promise<Turn>): Promise<Turn> {
  let least = await run();
  for (let turn = 1; turn < count; turn++) {
    const next = await run();
    if ((next.metered[meter] ?? 0) < (least.metered[meter] ?? 0)) least = next;
  }
  return least;
}

function sum(figures: readonly number[]): number {
  return figures.reduce((all, one) => all + one, 0);
}
