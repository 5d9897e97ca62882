import type { Dice } from "../../../protoport/testing/src/dice.ts";
import { type Fault, sleepUpTo } from "./store-database.ts";

/** Repeats work until a time, and counts what happened. */
export class FaultLoops {
  readonly injected: Map<string, number> = new Map();
  readonly #dice: Dice;
  readonly #untilMs: number;
  readonly #onProblem: (problem: string) => void;

  /** @param untilMs - the `performance.now()` time after which nothing is repeated */
  constructor(dice: Dice, untilMs: number, onProblem: (problem: string) => void) {
    this.#dice = dice;
    this.#untilMs = untilMs;
    this.#onProblem = onProblem;
  }

  /** Injects each fault once, then again and again in random order. @param faults - the currently possible ones */
  async inject(faults: () => readonly Fault[], pauseMs: number): Promise<void> {
    let queue: Fault[] = [];
    let cycles = 0;
    while (performance.now() < this.#untilMs) {
      const possible = faults();
      queue = queue.filter((fault) => possible.includes(fault));
      if (queue.length === 0) {
        queue = [...possible];
        cycles++;
      }
      const [fault] = queue.splice(cycles === 1 ? 0 : this.#dice.roll(queue.length), 1);
      if (fault !== undefined) await this.#injectOne(fault);
      await sleepUpTo(pauseMs, this.#dice);
    }
  }

  /** Repeats work that fails while the database is down, and counts successes under a name. */
  async repeat(name: string, work: () => Promise<unknown>, pauseMs: number): Promise<void> {
    while (performance.now() < this.#untilMs) {
      const counted = work().then(() => this.#count(name));
      await counted.catch(() => undefined);
      await sleepUpTo(pauseMs, this.#dice);
    }
  }

  async #injectOne(fault: Fault): Promise<void> {
    try {
      await fault.inject();
      this.#count(fault.name);
    } catch (error) {
      // The run continues, because its calls are worth judging.
      this.#onProblem(`${fault.name}: ${String(error)}`);
    }
  }

  #count(name: string): void {
    this.injected.set(name, (this.injected.get(name) ?? 0) + 1);
  }
}
