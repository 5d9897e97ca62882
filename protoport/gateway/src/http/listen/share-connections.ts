import type { ChildProcess, SendHandle } from "node:child_process";
import { createServer, type Server, type Socket } from "node:net";
import { refuseUnknownOptions } from "../options/index.ts";
import { bind, bindOptionNames, type BindOptions, type BoundAddress } from "./bind.ts";

/** A TCP port or Unix socket with connections that are distributed among several processes. */
export interface SharedPort extends BoundAddress {
  /**
   * Hands over connections to a process that was started with `fork` of `node:child_process`. The process gets
   * connections after its gateway listens with `handedOver`, until the gateway drains or the process exits. The options
   * of the process's gateway apply, such as TLS and limits.
   */
  handTo(worker: ChildProcess): void;
  /**
   * Continues to listen until no process accepts connections, then closes the port and resolves. Call `drain` after
   * asking all processes to drain. While the processes drain, a load balancer's probes get the response that the server
   * is not ready.
   */
  drain(): Promise<void>;
}

/** Messages from a process that accepts connections. Other messages may use the same channel. */
export type WorkerMessage =
  | { readonly gateway: "join" }
  | { readonly gateway: "ready" }
  | { readonly gateway: "taken"; readonly connection: number }
  | { readonly gateway: "closed"; readonly connections: number }
  | { readonly gateway: "leaving" };

/** Messages from the process that listens. */
export type SharedPortMessage =
  | { readonly gateway: "bound"; readonly address: BoundAddress }
  /** Hands over a connection. The socket is sent with this message. */
  | { readonly gateway: "connection"; readonly connection: number }
  /** Confirms "leaving". No connection is sent after this message. */
  | { readonly gateway: "left" };

/** A process that accepts connections. */
interface Worker {
  readonly process: ChildProcess;
  /** Number of open connections that were sent to the process. */
  connections: number;
  /** The connections that the process has not confirmed. */
  readonly unconfirmed: Map<number, Socket>;
}

/**
 * Listens, and hands over each connection to the process with the fewest connections. Calls are distributed even if
 * clients keep a few connections open for a long time. This process reads no bytes from the connections. The gateway
 * that accepts a connection handles TLS, the PROXY header and HTTP.
 *
 * A connection is not lost if the process that gets the connection exits before reading. That process confirms the
 * connection before it reads any data. Until the confirmation, this process keeps a copy of the socket, and can hand
 * the connection over to another process. Up to {@link queuedMax} connections are queued while no process accepts
 * connections.
 *
 * Rejects with errors from `net.Server`, such as EADDRINUSE, or a TypeError for unknown options.
 */
export async function shareConnections(options: BindOptions = {}): Promise<SharedPort> {
  refuseUnknownOptions(options, bindOptionNames, "shareConnections");
  const distributor = new ConnectionDistributor();
  // Sets the same socket options as a gateway that listens. Node keeps the options when a socket is sent.
  const server = createServer({ allowHalfOpen: true, noDelay: true, pauseOnConnect: true }, (socket) =>
    distributor.assignToWorker(socket),
  );
  const bound = await bind(server, options);
  return { ...bound, handTo: (process) => distributor.watch(process, bound), drain: () => distributor.drain(server) };
}

class ConnectionDistributor {
  /** The processes that accept connections. The process that has waited longest for a connection comes first. */
  readonly #workers = new Map<ChildProcess, Worker>();
  readonly #queued = new Set<Socket>();
  #handedCount = 0;
  #onLastLeft: (() => void) | undefined;
  #drained: Promise<void> | undefined;

  /** Sends a connection to a worker, or queues the connection until a worker is available. */
  assignToWorker(socket: Socket): void {
    const worker = this.#leastLoaded();
    if (worker !== undefined) this.#sendToWorker(socket, worker);
    else if (this.#queued.size < queuedMax) this.#queued.add(socket);
    else socket.destroy();
  }

  watch(process: ChildProcess, address: BoundAddress): void {
    const worker: Worker = { process, connections: 0, unconfirmed: new Map() };
    process.on("message", (message: WorkerMessage | null) => {
      if (message?.gateway === "join") sendToWorker(process, { gateway: "bound", address });
      else if (message?.gateway === "ready") this.#add(worker);
      else if (message?.gateway === "taken") closeCopies(worker, message.connection);
      else if (message?.gateway === "closed") worker.connections -= message.connections;
      else if (message?.gateway === "leaving") {
        sendToWorker(process, { gateway: "left" });
        this.#remove(worker);
      }
    });
    process.once("disconnect", () => this.#remove(worker));
    // Also listens for "exit", because node does not emit "disconnect" while a socket is in transit. "exit" may precede
    // the last messages.
    const removeOnceRead = (): void => {
      if (process.connected) setImmediate(removeOnceRead);
      else this.#remove(worker);
    };
    process.once("exit", removeOnceRead);
  }

  drain(server: Server): Promise<void> {
    return (this.#drained ??= this.#closeAfterLastWorker(server));
  }

  async #closeAfterLastWorker(server: Server): Promise<void> {
    await new Promise<void>((resolve) => {
      this.#onLastLeft = resolve;
      if (this.#workers.size === 0) resolve();
    });
    server.close();
    for (const socket of this.#queued) socket.destroy();
  }

  #leastLoaded(): Worker | undefined {
    let leastBusy: Worker | undefined;
    for (const worker of this.#workers.values()) {
      if (leastBusy === undefined || worker.connections < leastBusy.connections) leastBusy = worker;
    }
    return leastBusy;
  }

  #sendToWorker(socket: Socket, worker: Worker): void {
    // Moves the worker to the end, so that workers with the same number of connections take turns.
    this.#workers.delete(worker.process);
    this.#workers.set(worker.process, worker);
    const connection = (this.#handedCount += 1);
    worker.connections += 1;
    worker.unconfirmed.set(connection, socket);
    sendToWorker(worker.process, { gateway: "connection", connection }, socket);
  }

  #add(worker: Worker): void {
    this.#workers.set(worker.process, worker);
    for (const socket of this.#queued) this.assignToWorker(socket);
    this.#queued.clear();
  }

  #remove(worker: Worker): void {
    this.#workers.delete(worker.process);
    for (const socket of worker.unconfirmed.values()) this.assignToWorker(socket);
    worker.unconfirmed.clear();
    if (this.#workers.size === 0) this.#onLastLeft?.();
  }
}

/** Closes the copies of a confirmed connection, and of earlier connections that the worker had no descriptors for. */
function closeCopies(worker: Worker, taken: number): void {
  for (const [connection, socket] of worker.unconfirmed) {
    if (connection > taken) return;
    worker.unconfirmed.delete(connection);
    if (connection < taken) worker.connections -= 1;
    // Closing this copy does not close the connection, because the worker has another copy of the socket.
    socket.destroy();
  }
}

function sendToWorker(process: ChildProcess, message: SharedPortMessage, socket?: SendHandle): void {
  // Errors are ignored, because "disconnect" removes a process that has exited.
  process.send(message, socket, { keepOpen: true }, () => undefined);
}

/** Maximum connections that are queued while no process accepts connections: twice node's default listen backlog. */
const queuedMax = 1024;
