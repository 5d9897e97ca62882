/**
 * Counts and limits the bytes that a server's connections buffer because clients do not read. Above the limit, the
 * client that has not read for the longest time is disconnected, so that clients that never read cannot displace slow
 * ones.
 */
export class BacklogBudget {
  readonly #limitBytes: number;
  /** The backlogs with buffered bytes. The backlog that has made no progress for the longest time comes first. */
  readonly #waiting = new Set<Backlog>();
  bytes = 0;

  constructor(limitBytes: number) {
    this.#limitBytes = limitBytes;
  }

  /**
   * Opens a connection's backlog.
   *
   * @param closeConnection - called at most once, to close the connection and release its buffers
   */
  open(socket: Sink, closeConnection: () => void): Backlog {
    return new Backlog(this, socket, closeConnection);
  }

  /** Records a change to a backlog. Only {@link Backlog} calls this method and {@link enforceLimit}. */
  recordChange(backlog: Backlog, bytes: number, progressed: boolean): void {
    this.bytes += bytes;
    if (progressed || backlog.bytes === 0) this.#waiting.delete(backlog);
    if (backlog.bytes > 0) this.#waiting.add(backlog);
  }

  enforceLimit(backlog: Backlog): void {
    while (this.bytes > this.#limitBytes) {
      // A connection above its share is disconnected first, even if another connection has waited longer.
      const [first = backlog] = this.#waiting;
      const candidate = backlog.bytes > connectionShareBytes ? backlog : first;
      const { bytes } = candidate;
      candidate.count();
      // Counted again, because a socket emits no event when its buffer has been sent.
      if (candidate.bytes === bytes) candidate.disconnect();
    }
  }
}

/** A stream to which a connection writes, such as a socket. `writableLength` is the number of buffered bytes. */
interface Sink {
  readonly writableLength: number;
}

/** The buffered bytes on one connection, which count in a {@link BacklogBudget}. */
export class Backlog {
  readonly #budget: BacklogBudget;
  readonly #socket: Sink;
  readonly #closeConnection: () => void;
  /** Number of buffered bytes at the last count. */
  bytes = 0;
  /** Time of the client's last read or the start of buffering, in `performance.now()` milliseconds. */
  #progressedAtMs = performance.now();
  /** Number of bytes that had left the socket's buffer at the last count. May omit bytes that were never buffered. */
  sentBytes = 0;
  /** Number of bytes in the socket's buffer at the last count. */
  #socketBytes = 0;
  /** Number of bytes that the client has read since the last recorded progress. */
  #readBytes = 0;
  #closed = false;

  constructor(budget: BacklogBudget, socket: Sink, closeConnection: () => void) {
    this.#budget = budget;
    this.#socket = socket;
    this.#closeConnection = closeConnection;
  }

  /** Adds bytes that are buffered outside the socket. Above the limit, connections are closed, possibly this one. */
  add(bytes: number): void {
    this.#change(bytes, 0);
  }

  /** Removes bytes that {@link add} has added. */
  remove(bytes: number): void {
    this.#change(-bytes, bytes);
  }

  /**
   * Counts and returns the bytes that the socket buffers. May close connections, like {@link add}. `writtenBytes` were
   * written to the socket since the last call.
   */
  count(writtenBytes: number = 0): number {
    const previousSocketBytes = this.#socketBytes;
    const socketBytes = this.#socket.writableLength;
    // Usually the operating system has accepted all bytes, and the socket buffers none.
    if (previousSocketBytes === 0 && socketBytes === 0) return 0;
    const sentBytes = previousSocketBytes + writtenBytes - socketBytes;
    this.#socketBytes = socketBytes;
    this.sentBytes += sentBytes;
    if (previousSocketBytes === 0 || sentBytes > 0) this.#progressedAtMs = performance.now();
    this.#change(socketBytes - previousSocketBytes, sentBytes);
    return socketBytes;
  }

  /** Returns the milliseconds since the client last read buffered bytes, or 0 if the socket buffers no bytes. */
  stalledMs(nowMs: number): number {
    return this.count() > 0 ? nowMs - this.#progressedAtMs : 0;
  }

  /** Closes the backlog, which then ignores added and removed bytes. */
  close(): void {
    this.remove(this.bytes);
    this.#closed = true;
  }

  /** Closes the connection, because the total number of bytes is above the limit. */
  disconnect(): void {
    this.close();
    this.#closeConnection();
  }

  #change(bytes: number, readBytes: number): void {
    if (this.#closed) return;
    this.bytes += bytes;
    this.#readBytes += readBytes;
    const hasProgressed = this.#readBytes >= progressBytes;
    if (hasProgressed || this.bytes === 0) this.#readBytes = 0;
    this.#budget.recordChange(this, bytes, hasProgressed);
    if (bytes > 0) this.#budget.enforceLimit(this);
  }
}

/** Number of buffered bytes above which a connection is disconnected first. Clients that read buffer less. */
const connectionShareBytes = 16 * 1024 * 1024;

/**
 * Number of bytes that a client must read before progress is recorded. A client could otherwise avoid disconnection by
 * occasionally reading a single byte.
 */
const progressBytes = 16 * 1024;
