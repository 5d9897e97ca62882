import { setTimeout as sleep } from "node:timers/promises";
import type { Dice } from "../../../protoport/testing/src/dice.ts";
import type { Releases } from "../upgrade/next-release.ts";
import type { Stack } from "./stack.ts";
import { type Fault, freeze, killAndStart, type StoreDatabase } from "./store-database.ts";

export interface ServerFault extends Fault {
  /** Only in the first half, because memory and files may grow in the second half unless a program is stopped. */
  readonly isEarly?: true;
}

/** Returns the server faults. @param migrate - runs the next release's `migrate` */
export function serverFaults(
  stack: Stack,
  database: StoreDatabase,
  releases: Releases,
  dice: Dice,
  migrate: () => Promise<void>,
): readonly ServerFault[] {
  const { replicas, proxy } = stack;
  const [first, second] = replicas;
  const replaceReplicas = async (release: string): Promise<void> => {
    for (const replica of replicas) {
      replica.command = [release, "serve"];
      await replica.restart();
    }
  };
  // oxfmt-ignore
  return [
    { name: "upgrade, downgrade and upgrade", isEarly: true, inject: async () => {
        await migrate();
        await replaceReplicas(releases.next);
        await replaceReplicas(releases.old);
        await replaceReplicas(releases.next);
      } },
    { name: "replica 1 killed", isEarly: true, inject: () => killAndStart(second, dice) },
    { name: "proxy killed", isEarly: true, inject: () => killAndStart(proxy, dice) },
    { name: "proxy restarted", isEarly: true, inject: () => proxy.restart() },
    { name: "replica frozen", inject: () => freeze(dice.oneOf(replicas), dice) },
    { name: "replica 0 killed", inject: () => killAndStart(first, dice) },
    {
      // The database may execute the killed replica's statements.
      name: "replica 0 killed while the database is frozen",
      inject: async () => {
        database.signal("SIGSTOP");
        await sleep(1_000);
        await first.kill();
        database.signal("SIGCONT");
        await first.start();
      },
    },
    { name: "replica 0 restarted", inject: () => first.restart() },
    { name: "proxy frozen", inject: () => freeze(proxy, dice, 3_000) },
    { name: "proxy reloaded", inject: async () => stack.reloadProxy() },
  ];
}
