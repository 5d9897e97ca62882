/**
 * Counts the bytes that a server's connections buffer because their clients do not read, and limits the total.
 *
 * Above the limit, the connection whose client has read nothing for the longest time is closed, so that clients that
 * never read cannot displace a client that reads slowly.
 */
export class BacklogBudget {
  readonly #limitBytes: number;
  /** The backlogs with buffered bytes. The one whose client has read nothing for the longest time comes first. */
  readonly #waiting = new Set<Backlog>();
  /** The bytes that are buffered now. */
  bytes = 0;

  constructor(limitBytes: number) {
    this.#limitBytes = limitBytes;
  }

  /**
   * Opens a connection's backlog.
   *
   * @param socket - what the connection writes to
   * @param cut - closes the connection, which must then release all its buffers; called at most once
   */
  open(socket: Sink, cut: () => void): Backlog {
    return new Backlog(this, socket, cut);
  }

  /** Records a change to a backlog. Only {@link Backlog} calls this and {@link enforceLimit}. */
  changed(backlog: Backlog, bytes: number, progressed: boolean): void {
    this.bytes += bytes;
    if (progressed || backlog.bytes === 0) this.#waiting.delete(backlog);
    if (backlog.bytes > 0) this.#waiting.add(backlog);
  }

  /** Closes connections until the total is within the limit. */
  enforceLimit(backlog: Backlog): void {
    while (this.bytes > this.#limitBytes) {
      // If this connection buffers more than its share, it is closed instead of another one.
      const [first = backlog] = this.#waiting;
      const candidate = backlog.bytes > shareBytes ? backlog : first;
      const { bytes } = candidate;
      candidate.count();
      // Counted again first, because a socket emits no event when its buffer has been sent. The client may have read
      // everything.
      if (candidate.bytes === bytes) candidate.cutOff();
    }
  }
}

/** What a connection writes to, such as a socket, which knows how many bytes it still buffers. */
export interface Sink {
  readonly writableLength: number;
}

/** One connection's buffered bytes, counted in a {@link BacklogBudget}. */
export class Backlog {
  readonly #budget: BacklogBudget;
  readonly #socket: Sink;
  readonly #closeConnection: () => void;
  /** The buffered bytes, as last counted. */
  bytes = 0;
  /**
   * When the client last read from the socket's buffer, or when the socket began to buffer, in `performance.now()`
   * milliseconds. 0 before that.
   */
  progressedAtMs = 0;
  /**
   * How many bytes in total have left the socket's buffer, as last counted. Bytes that were never buffered may be
   * missing.
   */
  sentBytes = 0;
  /** The bytes that the socket buffered when last counted. */
  #socketBytes = 0;
  /** The bytes that the client has read since progress was last recorded. */
  #takenBytes = 0;
  #closed = false;

  constructor(budget: BacklogBudget, socket: Sink, cut: () => void) {
    this.#budget = budget;
    this.#socket = socket;
    this.#closeConnection = cut;
  }

  /** Adds bytes that are buffered outside the socket. Above the limit, connections are closed, possibly this one. */
  add(bytes: number): void {
    this.#change(bytes, 0);
  }

  /** Removes bytes that were added. */
  remove(bytes: number): void {
    this.#change(-bytes, bytes);
  }

  /**
   * Counts the bytes that the socket buffers. May close connections, as {@link add} does.
   *
   * @param writtenBytes - the bytes written to the socket since the last call
   * @returns how many bytes the socket buffers
   */
  count(writtenBytes: number = 0): number {
    const previousSocketBytes = this.#socketBytes;
    const socketBytes = this.#socket.writableLength;
    // The usual case. Everything was passed to the system.
    if (previousSocketBytes === 0 && socketBytes === 0) return 0;
    const sentBytes = previousSocketBytes + writtenBytes - socketBytes;
    this.#socketBytes = socketBytes;
    this.sentBytes += sentBytes;
    if (previousSocketBytes === 0 || sentBytes > 0) this.progressedAtMs = performance.now();
    this.#change(socketBytes - previousSocketBytes, sentBytes);
    return socketBytes;
  }

  /**
   * Returns for how many milliseconds the client has read nothing while the socket buffers bytes, or 0 if it buffers
   * none.
   */
  stalledMs(nowMs: number): number {
    return this.count() > 0 ? nowMs - this.progressedAtMs : 0;
  }

  /** Closes the backlog, which counts nothing from now on, even if bytes are added or removed. */
  close(): void {
    this.remove(this.bytes);
    this.#closed = true;
  }

  /** Closes the connection, because the total is above the limit. */
  cutOff(): void {
    this.close();
    this.#closeConnection();
  }

  #change(bytes: number, takenBytes: number): void {
    if (this.#closed) return;
    this.bytes += bytes;
    this.#takenBytes += takenBytes;
    const hasProgressed = this.#takenBytes >= progressBytes;
    if (hasProgressed || this.bytes === 0) this.#takenBytes = 0;
    this.#budget.changed(this, bytes, hasProgressed);
    if (bytes > 0) this.#budget.enforceLimit(this);
  }
}

/** One connection's share, in bytes. Clients that read do not need more. */
const shareBytes = 16 * 1024 * 1024;

/** Bytes that a client must read to count as making progress. Reading a byte now and then is not enough. */
const progressBytes = 16 * 1024;
