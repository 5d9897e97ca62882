import type { ChildProcess, SendHandle } from "node:child_process";
import { createServer, type Server, type Socket } from "node:net";
import { refuseUnknownOptions } from "../options/index.ts";
import { bind, bindOptionNames, type BindOptions, type BoundAddress } from "./bind.ts";

/** A port, or a Unix socket, whose connections are distributed among processes. */
export interface SharedPort extends BoundAddress {
  /**
   * Hands over connections to a process started with `fork` of `node:child_process`, from when its gateway listens with
   * `handedOver` until that gateway drains or the process exits. That gateway's options for TLS and limits apply, and
   * its drain.
   */
  handTo(worker: ChildProcess): void;
  /**
   * Continues to listen until no process accepts connections, then closes the port and resolves. Call it after asking
   * all processes to drain. Until they have drained, a load balancer's probes get the response that the server is not
   * ready.
   */
  drain(): Promise<void>;
}

/** The messages from a process that accepts connections. Other messages may use the same channel. */
export type WorkerMessage =
  | { readonly gateway: "join" }
  | { readonly gateway: "ready" }
  | { readonly gateway: "taken"; readonly connection: number }
  | { readonly gateway: "closed"; readonly connections: number }
  | { readonly gateway: "leaving" };

/** The messages from the process that listens. */
export type SharedPortMessage =
  | { readonly gateway: "bound"; readonly address: BoundAddress }
  /** Sent with the socket. */
  | { readonly gateway: "connection"; readonly connection: number }
  /** Confirms "leaving". No connection is sent after it. */
  | { readonly gateway: "left" };

/** A process that accepts connections. */
interface Worker {
  readonly process: ChildProcess;
  /** The number of connections that were sent to the process and are still open. */
  connections: number;
  /** The connections that the process has not confirmed. */
  readonly unconfirmed: Map<number, Socket>;
}

/**
 * Listens, and hands over each connection to the process with the fewest connections, so that calls are distributed
 * even if clients keep a few connections open for a long time. Nothing is read here, because the gateway that accepts
 * the connection handles TLS, the PROXY header and HTTP.
 *
 * No connection is lost if a process exits. A process confirms a connection before it reads any data. Only after that
 * is the socket closed in this process. Until then another process can get the connection. Up to {@link waitingMax}
 * connections are queued while there is no process.
 *
 * Rejects with the `net.Server` errors, such as EADDRINUSE, and a TypeError for unknown options.
 */
export async function shareConnections(options: BindOptions = {}): Promise<SharedPort> {
  refuseUnknownOptions(options, bindOptionNames, "shareConnections");
  const hub = new ConnectionHub();
  // Sets the same socket options as a gateway that listens itself. They are kept when the socket is sent.
  const server = createServer({ allowHalfOpen: true, noDelay: true, pauseOnConnect: true }, (socket) =>
    hub.assignToWorker(socket),
  );
  const bound = await bind(server, options);
  return { ...bound, handTo: (process) => hub.watch(process, bound), drain: () => hub.drain(server) };
}

class ConnectionHub {
  /** The processes that accept connections. The one that got a connection longest ago comes first. */
  readonly #workers = new Map<ChildProcess, Worker>();
  readonly #waiting = new Set<Socket>();
  #handedCount = 0;
  #onLastLeft: (() => void) | undefined;

  /** Sends a connection to a worker, or queues it until there is one. */
  assignToWorker(socket: Socket): void {
    const worker = this.#leastLoaded();
    if (worker !== undefined) this.#sendToWorker(socket, worker);
    else if (this.#waiting.size < waitingMax) this.#waiting.add(socket);
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
    // While a socket is in transit, node does not emit "disconnect". "exit" may be emitted before the last messages.
    const removeOnceRead = (): void => {
      if (process.connected) setImmediate(removeOnceRead);
      else this.#remove(worker);
    };
    process.once("exit", removeOnceRead);
  }

  async drain(server: Server): Promise<void> {
    await new Promise<void>((resolve) => {
      this.#onLastLeft = resolve;
      if (this.#workers.size === 0) resolve();
    });
    server.close();
    for (const socket of this.#waiting) socket.destroy();
  }

  #leastLoaded(): Worker | undefined {
    let leastBusy: Worker | undefined;
    for (const worker of this.#workers.values()) {
      if (leastBusy === undefined || worker.connections < leastBusy.connections) leastBusy = worker;
    }
    return leastBusy;
  }

  #sendToWorker(socket: Socket, worker: Worker): void {
    // Moved to the end, so that workers with the same number of connections take turns.
    this.#workers.delete(worker.process);
    this.#workers.set(worker.process, worker);
    const connection = (this.#handedCount += 1);
    worker.connections += 1;
    worker.unconfirmed.set(connection, socket);
    sendToWorker(worker.process, { gateway: "connection", connection }, socket);
  }

  #add(worker: Worker): void {
    this.#workers.set(worker.process, worker);
    for (const socket of this.#waiting) this.assignToWorker(socket);
    this.#waiting.clear();
  }

  #remove(worker: Worker): void {
    this.#workers.delete(worker.process);
    for (const socket of worker.unconfirmed.values()) this.assignToWorker(socket);
    worker.unconfirmed.clear();
    if (this.#workers.size === 0) this.#onLastLeft?.();
  }
}

/**
 * Closes the copy of a confirmed connection, and of earlier unconfirmed ones, which never arrived because the worker
 * had no file descriptor left.
 */
function closeCopies(worker: Worker, taken: number): void {
  for (const [connection, socket] of worker.unconfirmed) {
    if (connection > taken) return;
    worker.unconfirmed.delete(connection);
    if (connection < taken) worker.connections -= 1;
    // The client does not notice. Only closing a socket's last copy closes its connection.
    socket.destroy();
  }
}

function sendToWorker(process: ChildProcess, message: SharedPortMessage, socket?: SendHandle): void {
  // Errors are ignored, because a process that has exited is removed by its "disconnect".
  process.send(message, socket, { keepOpen: true }, () => undefined);
}

/** Connections that are queued while no process accepts them: twice the backlog with which node listens. */
const waitingMax = 1024;
