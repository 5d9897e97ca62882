import type { ChildProcess } from "node:child_process";
import { once } from "node:events";

/** The resources that a server has used since it started. */
export interface Usage {
  /** User and system time in all threads of the server. */
  readonly cpuUs: number;
  readonly rssBytes: number;
}

/** A server program that runs on the server's core and listens on loopback. */
export interface RunningServer {
  readonly port: number;
  usage(): Promise<Usage>;
  /** Returns the server's usage after a garbage collection. */
  settle(): Promise<Usage>;
  stop(): Promise<void>;
}

/** Maximum time in ms until a server listens or responds. */
export const replyLimitMs = 30_000;

/**
 * Stops a server, and returns when it has exited. A node program exits when its channel is disconnected, and then saves
 * its compiled code for the next start. Any other program, and a node program that does not exit in time, is killed.
 */
export async function stop(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return;
  const exited = once(child, "exit");
  if (child.connected) child.disconnect();
  else child.kill("SIGKILL");
  const limit = setTimeout(() => child.kill("SIGKILL"), replyLimitMs);
  await exited;
  clearTimeout(limit);
}

/**
 * Returns a server program's next message. Rejects if the message has another kind, if the program exits first, and
 * after a timeout.
 */
export function nextMessage<M extends { readonly kind: string }>(child: ChildProcess, kind: M["kind"]): Promise<M> {
  return new Promise((resolve, reject) => {
    const settle = (message: M | Error): void => {
      clearTimeout(limit);
      child.off("message", settle).off("exit", fail);
      if (message instanceof Error) reject(message);
      else if (message.kind === kind) resolve(message);
      else reject(new Error(`expected a message of kind "${kind}" from the server, got "${message.kind}"`));
    };
    const fail = (): void =>
      settle(new Error(`the server exited or did not respond within ${String(replyLimitMs)} ms`));
    const limit = setTimeout(fail, replyLimitMs);
    child.on("message", settle).on("exit", fail);
  });
}
