import { subscribe, unsubscribe } from "node:diagnostics_channel";

/** How many connections the servers of this process have accepted. Dispose of it with `using`. */
export interface ConnectionCount {
  readonly count: number;
  [Symbol.dispose](): void;
}

/** Begins to count them. */
export function countConnections(): ConnectionCount {
  // Published by node for each connection that a server accepts.
  const channel = "net.server.socket";
  let count = 0;
  const add = (): void => void count++;
  subscribe(channel, add);
  return {
    get count() {
      return count;
    },
    [Symbol.dispose]: () => void unsubscribe(channel, add),
  };
}
