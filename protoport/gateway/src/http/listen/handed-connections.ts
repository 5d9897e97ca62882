import type { Socket } from "node:net";
import { withCode } from "../errors/index.ts";
import type { BoundAddress } from "./bind.ts";
import type { SharedPortMessage, WorkerMessage } from "./share-connections.ts";

/** The connections that this process gets from its parent process, which listens on a port. */
export interface HandedConnections {
  readonly address: BoundAddress;
  /** Starts to request connections from the parent process. */
  start(take: (socket: Socket) => void): void;
  /** Stops requesting connections. Connections in transit go to other processes. */
  leave(): void;
}

/**
 * Joins the processes to which the parent process hands over connections. Waits until the parent has passed this
 * process to `handTo`. Rejects if the parent has disconnected, with the reason of `signal`, or with ERR_OPTIONS if this
 * process was not started with `fork`.
 */
export async function joinSharedPort(signal: AbortSignal): Promise<HandedConnections> {
  if (process.send === undefined)
    throw withCode(new Error("handedOver requires a process started with child_process.fork()"), "ERR_OPTIONS");
  const { promise, resolve, reject } = Promise.withResolvers<HandedConnections>();
  const worker = new SharedPortWorker();
  const receive = (message: SharedPortMessage | null, socket?: Socket): void => {
    if (message?.gateway === "connection") worker.receive(message.connection, socket);
    else if (message?.gateway === "bound")
      resolve({ address: message.address, start: (take) => worker.start(take), leave: () => worker.leave() });
    // The listener stays until the last connection, because connections without a listener are never served.
    // An earlier worker of this process may have left just before this worker joined.
    else if (message?.gateway === "left" && worker.isLeaving) process.off("message", receive);
  };
  const onDisconnect = (): void => reject(new Error("the process that hands over connections has stopped"));
  const onAbort = (): void => reject(signal.reason);
  process.on("message", receive).once("disconnect", onDisconnect);
  signal.addEventListener("abort", onAbort);
  sendToParent({ gateway: "join" });
  try {
    return await promise;
  } catch (error) {
    process.off("message", receive);
    throw error;
  } finally {
    process.off("disconnect", onDisconnect);
    signal.removeEventListener("abort", onAbort);
  }
}

class SharedPortWorker {
  isLeaving = false;
  #take: ((socket: Socket) => void) | undefined;
  /** Number of connections that closed in this event-loop turn. */
  #closed = 0;

  start(take: (socket: Socket) => void): void {
    this.#take = take;
    sendToParent({ gateway: "ready" });
  }

  leave(): void {
    this.#take = undefined;
    this.isLeaving = true;
    sendToParent({ gateway: "leaving" });
  }

  /** Accepts a connection before reading from the socket, which starts in a later event-loop turn. */
  receive(connection: number, socket: Socket | undefined): void {
    const take = this.#take;
    // The connection is not confirmed, so the parent passes the connection to another process. A connection that has
    // closed in transit arrives without a socket.
    if (take === undefined || socket === undefined) return void socket?.destroy();
    let isConfirmed = false;
    sendToParent({ gateway: "taken", connection }, () => (isConfirmed = true));
    socket.on("close", () => this.#countClosed());
    process.nextTick(() => {
      // Enables half-open mode, which is off when node creates a socket from a received handle.
      socket.allowHalfOpen = true;
      if (isConfirmed) take(socket);
      // The channel is full, so the confirmation is not sent yet. If this process read from the socket and exited,
      // another process would get the connection without the first bytes.
      else socket.destroy();
    });
  }

  #countClosed(): void {
    this.#closed += 1;
    if (this.#closed > 1) return;
    setImmediate(() => {
      sendToParent({ gateway: "closed", connections: this.#closed });
      this.#closed = 0;
    });
  }
}

function sendToParent(message: WorkerMessage, done: () => void = () => undefined): void {
  // Errors are ignored, because this process continues to serve its connections without its parent.
  process.send?.(message, undefined, undefined, done);
}
