import { setTimeout as sleep } from "node:timers/promises";
import type { Dice } from "../../../protoport/testing/src/dice.ts";
import type { FinalTables } from "../cluster/check-history.ts";

/** A fault that ends by itself. */
export interface Fault {
  readonly name: string;
  /** Injects the fault, and resolves when it has ended. */
  inject(): Promise<unknown>;
}

/** A plant store's database, which other programs use too. Dispose it with `await using`. */
export interface StoreDatabase extends AsyncDisposable {
  readonly url: string;
  /** `migrate`'s `DATABASE_URL`, which does not use a pooler. */
  readonly directUrl: string;
  /** Creates what {@link disturb} requires, after `migrate`. */
  prepare(): Promise<void>;
  readonly faults: readonly Fault[];
  /** Sends a signal to the program that can block deletions, which SIGSTOP freezes. */
  signal(name: NodeJS.Signals): void;
  /** Disturbs the database once, as another program may. May reject, because the database may be down. */
  disturb(): Promise<unknown>;
  readTables(): Promise<FinalTables>;
  /** Returns how many server connections are open, after all servers have stopped. */
  countConnections(): Promise<number>;
}

/** Sleeps between 0.1 s and a maximum. */
export const sleepUpTo = (maxMs: number, dice: Dice): Promise<void> => sleep(100 + dice.roll(maxMs - 100));

type Freezable = { signal(name: NodeJS.Signals): void };

/** Freezes a program for up to `maxMs`; by default for less time than callers wait. */
export async function freeze(program: Freezable, dice: Dice, maxMs: number = 6_000): Promise<void> {
  program.signal("SIGSTOP");
  await sleepUpTo(maxMs, dice);
  program.signal("SIGCONT");
}

export async function killAndStart(
  program: { kill(): Promise<void>; start(): Promise<void> },
  dice: Dice,
): Promise<void> {
  await program.kill();
  await sleepUpTo(2_000, dice);
  await program.start();
}
