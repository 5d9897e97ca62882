import type { ChildProcess } from "node:child_process";
import { once } from "node:events";

/** What a server has used since it started. */
export interface Usage {
  /** User and system time of all its threads. */
  readonly cpuUs: number;
  readonly rssBytes: number;
}

/** A server program that runs on the server's core and listens on loopback. */
export interface RunningServer {
  readonly port: number;
  usage(): Promise<Usage>;
  /** The usage after a garbage collection. */
  settle(): Promise<Usage>;
  stop(): Promise<void>;
}

/** A server that neither listens nor answers by then is not going to, in ms. */
export const replyLimitMs = 30_000;

/**
 * Ends a server, and returns once it has. A program of node's ends itself when it is left alone, and then keeps its
 * compiled code for its next start; any other is killed, and so is one that does not end.
 */
export async function stop(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return;
  const ended = once(child, "exit");
  if (child.connected) child.disconnect();
  else child.kill("SIGKILL");
  const limit = setTimeout(() => child.kill("SIGKILL"), replyLimitMs);
  await ended;
  clearTimeout(limit);
}

/**
 * Returns the next message of a server program, which must be of this kind. Rejects for any other, when the program
 * ends first, and when it says nothing in time.
 */
export function nextMessage<M extends { readonly kind: string }>(child: ChildProcess, kind: M["kind"]): Promise<M> {
  return new Promise((resolve, reject) => {
    const settle = (message: M | Error): void => {
      // Of a gateway to the process that hands over its connections.
      if ("gateway" in message) return;
      clearTimeout(limit);
      child.off("message", settle).off("exit", fail);
      if (message instanceof Error) reject(message);
      else if (message.kind === kind) resolve(message);
      else reject(new Error(`the server said "${message.kind}" instead of "${kind}"`));
    };
    const fail = (): void => settle(new Error(`the server ended, or said nothing for ${String(replyLimitMs)} ms`));
    const limit = setTimeout(fail, replyLimitMs);
    child.on("message", settle).on("exit", fail);
  });
}
