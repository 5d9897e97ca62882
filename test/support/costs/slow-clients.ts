import { fork } from "node:child_process";
import { once } from "node:events";
import { fileURLToPath } from "node:url";
import type { Address } from "../carriers/exchange.ts";
import { waitLimitMs, within } from "../deadline.ts";

/** How a client reads what is sent to it. The path of its request says so, too. */
export type Manner = "slowly" | "never" | "always";

/** What test/costs/slow-clients.ts is told to do. It answers with a message when that is done. */
export type SlowClientsOrder =
  | { readonly what: "open"; readonly address: Address; readonly count: number; readonly manner: Manner }
  | { readonly what: "readSome" };

/** Clients of Server-Sent Events in a process of their own. Dispose of them with `await using`. */
export interface SlowClients {
  /** Opens so many connections, each with a request for events. */
  open(address: Address, count: number, manner: Manner): Promise<void>;
  /** Lets each of those that read slowly read what is there, and waits until it has. */
  readSome(): Promise<void>;
  [Symbol.asyncDispose](): Promise<void>;
}

const program = fileURLToPath(new URL("../../costs/slow-clients.ts", import.meta.url));

/** Starts test/costs/slow-clients.ts. */
export function startSlowClients(): SlowClients {
  const child = fork(program, { execArgv: [] });
  const tell = async (order: SlowClientsOrder): Promise<void> => {
    child.send(order);
    await within(once(child, "message"), `the slow clients to ${order.what}`, 2 * waitLimitMs);
  };
  return {
    open: (address, count, manner) => tell({ what: "open", address, count, manner }),
    readSome: () => tell({ what: "readSome" }),
    [Symbol.asyncDispose]: async () => {
      if (child.kill("SIGKILL")) await once(child, "exit");
    },
  };
}
