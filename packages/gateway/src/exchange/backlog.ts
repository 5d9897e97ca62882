/**
 * Counts the bytes that a server's connections hold because their clients do not read, and bounds the total.
 *
 * Above the bound, the connection whose client has taken nothing for the longest time is cut off. So clients that never
 * read cannot displace one that reads, however slowly.
 */
export class BacklogBudget {
  readonly #limitBytes: number;
  /** Accounts that hold bytes; the one whose client has taken nothing for the longest comes first. */
  readonly #waiting = new Set<Backlog>();
  /** Bytes held now. */
  bytes = 0;

  constructor(limitBytes: number) {
    this.#limitBytes = limitBytes;
  }

  /**
   * Opens the account of a connection.
   *
   * @param socket - what the connection writes to
   * @param cut - ends the connection, which must then release everything it holds; called at most once
   */
  open(socket: Sink, cut: () => void): Backlog {
    return new Backlog(this, socket, cut);
  }

  /** Records a change to an account. This and {@link makeRoom} are for {@link Backlog} alone. */
  changed(backlog: Backlog, bytes: number, progressed: boolean): void {
    this.bytes += bytes;
    if (progressed || backlog.bytes === 0) this.#waiting.delete(backlog);
    if (backlog.bytes > 0) this.#waiting.add(backlog);
  }

  /** Cuts off connections until the total is within the bound. */
  makeRoom(backlog: Backlog): void {
    while (this.bytes > this.#limitBytes) {
      // A connection that holds more than its share pays for its own growth.
      const [first = backlog] = this.#waiting;
      const held = backlog.bytes > shareBytes ? backlog : first;
      const { bytes } = held;
      held.count();
      // A socket does not tell when it has sent what it held, so a client may have read all that was counted.
      if (held.bytes === bytes) held.cutOff();
    }
  }
}

/** What a connection writes to, such as a socket, and how many bytes of that it still holds. */
export interface Sink {
  readonly writableLength: number;
}

/** The account of one connection in a {@link BacklogBudget}. */
export class Backlog {
  readonly #budget: BacklogBudget;
  readonly #socket: Sink;
  readonly #cut: () => void;
  /** Bytes held now, as last counted. */
  bytes = 0;
  /**
   * When the client last took some of what the socket held, or the socket began to hold something, by
   * `performance.now()`; 0 before that.
   */
  movedAtMs = 0;
  /** How many of the bytes the socket held when last counted. */
  #socketBytes = 0;
  /** Bytes that the client has taken since progress was last noted. */
  #takenBytes = 0;
  #closed = false;

  constructor(budget: BacklogBudget, socket: Sink, cut: () => void) {
    this.#budget = budget;
    this.#socket = socket;
    this.#cut = cut;
  }

  /** Adds bytes that wait outside the socket. If there is no room, connections are cut off, perhaps this one. */
  add(bytes: number): void {
    this.#change(bytes, 0);
  }

  /** Removes bytes that were added. */
  remove(bytes: number): void {
    this.#change(-bytes, bytes);
  }

  /**
   * Counts what the socket holds, after `writtenBytes` more were written to it. Cuts off as {@link add} does.
   *
   * @returns how many bytes it holds
   */
  count(writtenBytes: number = 0): number {
    const before = this.#socketBytes;
    const held = this.#socket.writableLength;
    // The usual case: the system took everything.
    if (before === 0 && held === 0) return 0;
    const taken = before + writtenBytes - held;
    this.#socketBytes = held;
    if (before === 0 || taken > 0) this.movedAtMs = performance.now();
    this.#change(held - before, taken);
    return held;
  }

  /** Returns for how long the client has taken none of what the socket holds, in milliseconds; 0 if it holds nothing. */
  stalledMs(nowMs: number): number {
    return this.count() > 0 ? nowMs - this.movedAtMs : 0;
  }

  /** Closes the account: it holds nothing from now on, whatever is added or removed later. */
  close(): void {
    this.remove(this.bytes);
    this.#closed = true;
  }

  /** Ends the connection to make room for others. */
  cutOff(): void {
    this.close();
    this.#cut();
  }

  #change(bytes: number, takenBytes: number): void {
    if (this.#closed) return;
    this.bytes += bytes;
    this.#takenBytes += takenBytes;
    const progressed = this.#takenBytes >= progressBytes;
    if (progressed || this.bytes === 0) this.#takenBytes = 0;
    this.#budget.changed(this, bytes, progressed);
    if (bytes > 0) this.#budget.makeRoom(this);
  }
}

/** The share of one connection, in bytes. No client that reads needs more. */
const shareBytes = 16 * 1024 * 1024;

/** Bytes that a client must take to count as making progress, so that a byte now and then does not save it. */
const progressBytes = 16 * 1024;
