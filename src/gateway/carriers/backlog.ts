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
   * @param cut - ends the connection, which must then release everything it holds; called at most once
   */
  open(cut: () => void): Backlog {
    return new Backlog(this, cut);
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
      (backlog.bytes > shareBytes ? backlog : first).cutOff();
    }
  }
}

/** The account of one connection in a {@link BacklogBudget}. */
export class Backlog {
  readonly #budget: BacklogBudget;
  readonly #cut: () => void;
  /** Bytes held now. */
  bytes = 0;
  /** Bytes that the client has taken since progress was last noted. */
  #takenBytes = 0;
  #closed = false;

  constructor(budget: BacklogBudget, cut: () => void) {
    this.#budget = budget;
    this.#cut = cut;
  }

  /** Adds bytes. If there is no room for them, connections are cut off, perhaps this one. */
  add(bytes: number): void {
    if (this.#closed) return;
    this.bytes += bytes;
    this.#budget.changed(this, bytes, false);
    this.#budget.makeRoom(this);
  }

  /** Removes bytes that the client has taken. */
  remove(bytes: number): void {
    if (this.#closed) return;
    this.bytes -= bytes;
    this.#takenBytes += bytes;
    const progressed = this.#takenBytes >= progressBytes;
    if (progressed || this.bytes === 0) this.#takenBytes = 0;
    this.#budget.changed(this, -bytes, progressed);
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
}

/** The share of one connection, in bytes. No client that reads needs more. */
const shareBytes = 16 * 1024 * 1024;

/** Bytes that a client must take to count as making progress, so that a byte now and then does not save it. */
const progressBytes = 16 * 1024;
