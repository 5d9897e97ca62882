import type { ChildProcess, SendHandle } from "node:child_process";
import { createServer, type Server, type Socket } from "node:net";
import { refuseUnknownOptions } from "../options/index.ts";
import { bind, bindOptionNames, type BindOptions, type BoundAddress } from "./bind.ts";

/** A port, or a Unix socket, whose connections go to several processes. */
export interface SharedPort extends BoundAddress {
  /**
   * Hands connections to a process that `fork` of `node:child_process` has started: from when its gateway listens with
   * `handedOver`, until that gateway drains or the process ends. Its TLS, its limits and its drain are its own.
   */
  handTo(worker: ChildProcess): void;
  /**
   * Goes on until no process takes connections, then stops listening and resolves. To be called when all of them are
   * told to drain: until they do, each probe of a balancer is answered that the server is not ready.
   */
  drain(): Promise<void>;
}

/** What a process that takes connections says; other messages may go over the same channel. */
export type WorkerMessage =
  | { readonly gateway: "join" }
  | { readonly gateway: "ready" }
  | { readonly gateway: "taken"; readonly connection: number }
  | { readonly gateway: "closed"; readonly connections: number }
  | { readonly gateway: "leaving" };

/** What the process that listens says. */
export type SharedPortMessage =
  | { readonly gateway: "bound"; readonly address: BoundAddress }
  /** Comes with the socket. */
  | { readonly gateway: "connection"; readonly connection: number }
  /** Answers "leaving": no connection comes after it. */
  | { readonly gateway: "left" };

/** A process that takes connections. */
interface Worker {
  readonly process: ChildProcess;
  /** The connections that it was handed and has not closed. */
  connections: number;
  /** Those of which it has not said that it has taken them. */
  readonly untaken: Map<number, Socket>;
}

/**
 * Listens, and hands each connection to the process that has the fewest of them, so that calls spread over processes
 * even when their callers keep few connections for long. Not a byte is read here: TLS, the PROXY header and HTTP are
 * the gateway's that takes the connection.
 *
 * No connection is lost with a process. Its copy here is closed only when the process says that it has taken it, before
 * it reads; until then another may get it. Up to {@link waitingMax} wait while there is no process.
 *
 * Rejects with the errors of `net.Server`, such as EADDRINUSE, and a TypeError for options that do not exist.
 */
export async function shareConnections(options: BindOptions = {}): Promise<SharedPort> {
  refuseUnknownOptions(options, bindOptionNames, "shareConnections");
  const hub = new ConnectionHub();
  // As a gateway that listens by itself has them; what is set on a socket stays set where it goes.
  const server = createServer({ allowHalfOpen: true, noDelay: true, pauseOnConnect: true }, (socket) =>
    hub.place(socket),
  );
  const bound = await bind(server, options);
  return { ...bound, handTo: (process) => hub.watch(process, bound), drain: () => hub.drain(server) };
}

class ConnectionHub {
  /** Those that take connections; first the one that was handed one longest ago. */
  readonly #workers = new Map<ChildProcess, Worker>();
  readonly #waiting = new Set<Socket>();
  #handed = 0;
  #onLastLeft: (() => void) | undefined;

  /** Hands a connection to a worker, or keeps it until there is one. */
  place(socket: Socket): void {
    const worker = this.#leastLoaded();
    if (worker !== undefined) this.#hand(socket, worker);
    else if (this.#waiting.size < waitingMax) this.#waiting.add(socket);
    else socket.destroy();
  }

  watch(process: ChildProcess, address: BoundAddress): void {
    const worker: Worker = { process, connections: 0, untaken: new Map() };
    process.on("message", (message: WorkerMessage | null) => {
      if (message?.gateway === "join") tell(process, { gateway: "bound", address });
      else if (message?.gateway === "ready") this.#add(worker);
      else if (message?.gateway === "taken") forget(worker, message.connection);
      else if (message?.gateway === "closed") worker.connections -= message.connections;
      else if (message?.gateway === "leaving") {
        tell(process, { gateway: "left" });
        this.#remove(worker);
      }
    });
    process.once("disconnect", () => this.#remove(worker));
    // While a socket is on its way, node does not say that the channel is closed. "exit" may come before the last messages.
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
    let least: Worker | undefined;
    for (const worker of this.#workers.values()) {
      if (least === undefined || worker.connections < least.connections) least = worker;
    }
    return least;
  }

  #hand(socket: Socket, worker: Worker): void {
    // To the end, so that of two with as many connections each has its turn.
    this.#workers.delete(worker.process);
    this.#workers.set(worker.process, worker);
    const connection = (this.#handed += 1);
    worker.connections += 1;
    worker.untaken.set(connection, socket);
    tell(worker.process, { gateway: "connection", connection }, socket);
  }

  #add(worker: Worker): void {
    this.#workers.set(worker.process, worker);
    for (const socket of this.#waiting) this.place(socket);
    this.#waiting.clear();
  }

  #remove(worker: Worker): void {
    this.#workers.delete(worker.process);
    for (const socket of worker.untaken.values()) this.place(socket);
    worker.untaken.clear();
    if (this.#workers.size === 0) this.#onLastLeft?.();
  }
}

/** Closes the copy of a connection that was taken, and those before it, which never arrived: the worker has no file left. */
function forget(worker: Worker, taken: number): void {
  for (const [connection, socket] of worker.untaken) {
    if (connection > taken) return;
    worker.untaken.delete(connection);
    if (connection < taken) worker.connections -= 1;
    // Without a word to the client: only the last copy of a socket that is closed closes its connection.
    socket.destroy();
  }
}

function tell(process: ChildProcess, message: SharedPortMessage, socket?: SendHandle): void {
  // An error is ignored: a process that has ended is removed by its "disconnect".
  process.send(message, socket, { keepOpen: true }, () => undefined);
}

/** Connections that are kept while no process takes them: twice the queue of a port that node listens on. */
const waitingMax = 1024;
