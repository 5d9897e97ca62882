import type { StoreConnections } from "../../../service/index.ts";
import type { Session } from "./session.ts";

/** Sessions that are opened on demand, used by one caller at a time, and kept until the pool is closed. */
export class SessionPool {
  readonly #open: () => Session;
  readonly #max: number;
  /** As many as were ever in use at the same time. */
  readonly #sessions: Session[] = [];
  /** The last one used is reused first. */
  readonly #idle: Session[] = [];
  readonly #waiting: ((session: Session) => void)[] = [];

  /** @param max - maximum number of sessions. Further callers wait for one. By default there is no limit */
  constructor(open: () => Session, max: number = Number.POSITIVE_INFINITY) {
    this.#open = open;
    this.#max = max;
  }

  get connections(): StoreConnections {
    return { used: this.#sessions.length - this.#idle.length, idle: this.#idle.length };
  }

  /** Uses a session, all of whose work has a deadline on the `performance.now()` clock. */
  async use<Result>(deadlineMs: number, work: (session: Session) => Promise<Result>): Promise<Result> {
    const session = this.#idle.pop() ?? (this.#sessions.length < this.#max ? this.#add() : await this.#next());
    session.deadlineMs = deadlineMs;
    try {
      return await work(session);
    } finally {
      const waiting = this.#waiting.shift();
      if (waiting === undefined) this.#idle.push(session);
      else waiting(session);
    }
  }

  async close(): Promise<void> {
    await Promise.all(this.#sessions.map((session) => session.close()));
  }

  #add(): Session {
    const session = this.#open();
    this.#sessions.push(session);
    return session;
  }

  #next(): Promise<Session> {
    return new Promise((resolve) => this.#waiting.push(resolve));
  }
}
