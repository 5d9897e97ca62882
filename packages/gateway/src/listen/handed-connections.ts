import type { Socket } from "node:net";
import { withCode } from "../errors/index.ts";
import type { BoundAddress } from "./bind.ts";
import type { SharedPortMessage, WorkerMessage } from "./share-connections.ts";

/** The share of this process in a port that the process which started it listens on. */
export interface HandedConnections {
  readonly address: BoundAddress;
  /** Has connections handed over from now on. */
  start(take: (socket: Socket) => void): void;
  /** Has no more handed over. Those on their way go to other processes. */
  leave(): void;
}

/**
 * Joins the processes that the parent of this one hands connections to.
 *
 * Rejects with ERR_OPTIONS in a process that `fork` has not started, and when the parent is gone. Waits until the
 * parent has passed this process to `handTo`.
 */
export async function joinSharedPort(): Promise<HandedConnections> {
  if (process.send === undefined)
    throw withCode(new Error("handedOver requires a process started with child_process.fork()"), "ERR_OPTIONS");
  const { promise, resolve, reject } = Promise.withResolvers<HandedConnections>();
  const share = new Share();
  const receive = (message: SharedPortMessage | null, socket?: Socket): void => {
    if (message?.gateway === "connection") share.receive(message.connection, socket);
    else if (message?.gateway === "bound")
      resolve({ address: message.address, start: (take) => share.start(take), leave: () => share.leave() });
    // Only now: a connection that arrives while nobody listens for messages would be read, and yet not be taken.
    else if (message?.gateway === "left") process.off("message", receive);
  };
  process.on("message", receive);
  process.once("disconnect", () => reject(new Error("the process that hands over connections has stopped")));
  say({ gateway: "join" });
  return await promise;
}

class Share {
  #take: ((socket: Socket) => void) | undefined;
  /** Connections that closed in this turn of the event loop. */
  #closed = 0;

  start(take: (socket: Socket) => void): void {
    this.#take = take;
    say({ gateway: "ready" });
  }

  leave(): void {
    this.#take = undefined;
    say({ gateway: "leaving" });
  }

  /** Takes a connection of which nothing has been read: the bytes of a socket come in a later turn of the event loop. */
  receive(connection: number, socket: Socket | undefined): void {
    const take = this.#take;
    // Not said to be taken, so it goes to another process. One that has closed meanwhile comes without its socket.
    if (take === undefined || socket === undefined) return void socket?.destroy();
    let isSaid = false;
    say({ gateway: "taken", connection }, () => (isSaid = true));
    socket.on("close", () => this.#countClosed());
    process.nextTick(() => {
      // What node makes of a handle is not half-open.
      socket.allowHalfOpen = true;
      if (isSaid) take(socket);
      // The channel is full. Were this process to read, and end before that is said, another would get a connection
      // whose first bytes are lost, and take the middle of a request for a request.
      else socket.destroy();
    });
  }

  #countClosed(): void {
    this.#closed += 1;
    if (this.#closed > 1) return;
    setImmediate(() => {
      say({ gateway: "closed", connections: this.#closed });
      this.#closed = 0;
    });
  }
}

function say(message: WorkerMessage, done: () => void = () => undefined): void {
  // An error is ignored: without its parent, this process serves what it has.
  process.send?.(message, undefined, undefined, done);
}
